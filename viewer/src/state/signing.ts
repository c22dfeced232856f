/** Signing in and out. The server answers with a cookie, which no script can read. */

import { api, apiOnce } from "../api/client";

/** How people sign in here. */
export interface Modes {
  /** A name needs its password, or an access key its secret. Otherwise a name is enough. */
  readonly password: boolean;
  /** Who looks around without a name, if the server allows it. */
  readonly guest: { readonly name: string; readonly password: string } | null;
}

/** The access key by which a page lists and adds users where a name is enough. Every copy of ClearML's web UI has it. */
const PAGES_KEY = "EYVQ385RW7Y2QQUH88CZ7DWIQ1WUHP";
const PAGES_SECRET = "XhkH6a6ds9JBnM_MrahYyYdO-wS2bqFSm8gl-V0UZXH26Ydd6Eyi28TeBEoSr6Z3Bes";

interface SupportedModes {
  readonly basic: {
    readonly enabled: boolean;
    readonly guest: { readonly enabled: boolean; readonly username?: string; readonly password?: string };
  };
}

/** Ask the server how people sign in. Throws ServerError. */
export async function findModes(): Promise<Modes> {
  const { enabled, guest } = (await apiOnce<SupportedModes>("login.supported_modes", {})).basic;
  const isOpen = guest.enabled && guest.username !== undefined && guest.password !== undefined;
  return { password: enabled, guest: isOpen ? { name: guest.username!, password: guest.password! } : null };
}

/** By a name and its password, or an access key and its secret. Throws ServerError. */
export async function signIn(name: string, password: string): Promise<void> {
  await apiOnce("auth.login", {}, { authorization: basic(name, password) });
}

/** By a name alone; somebody new is added. Throws ServerError. */
export async function signInByName(name: string): Promise<void> {
  const authorization = basic(PAGES_KEY, PAGES_SECRET);
  const { users } = await apiOnce<{ users: { id: string; name: string }[] }>("users.get_all", {}, { authorization });
  const id =
    users.find((user) => user.name === name)?.id ??
    (await apiOnce<{ id: string }>("auth.create_user", { name, role: "user" }, { authorization })).id;
  await apiOnce("auth.login", {}, { authorization, "x-clearml-impersonate-as": id });
}

/** By what follows `#link=` in a link that the server printed. Throws ServerError. */
export async function signInByLink(link: string): Promise<void> {
  await apiOnce("auth.login_by_link", { link });
}

/** The cookie and this sign-in end. The pages are loaded anew, so that nothing of this user stays. */
export async function signOut(): Promise<void> {
  await api("login.logout");
  location.assign("/sign-in");
}

/** Where to go after signing in: only to a path of this server, otherwise to the start. */
export function pathAfter(next: string | null, origin: string): string {
  if (!next?.startsWith("/")) return "/";
  let target: URL;
  try {
    target = new URL(next, origin);
  } catch {
    return "/";
  }
  const path = target.pathname + target.search + target.hash;
  return target.origin === origin && !path.startsWith("//") && target.pathname !== "/sign-in" ? path : "/";
}

/** An Authorization header; names may have any characters. */
export function basic(name: string, password: string): string {
  const bytes = new TextEncoder().encode(`${name}:${password}`);
  return `Basic ${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))}`;
}
