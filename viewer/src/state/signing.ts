/** Signing in. The server answers with a cookie, which no script can read. */

import { apiOnce } from "../api/client";

/** How people sign in here. */
export interface Modes {
  /** A name needs its password, or an access key its secret. Otherwise a name is enough. */
  readonly password: boolean;
  /** Who looks around without a name, if the server allows it. */
  readonly guest: { readonly name: string; readonly password: string } | null;
  /** What the provider is called at which people sign in; null without one. */
  readonly provider: string | null;
}

/** What a provider sends the browser back with, behind the "?" of the sign-in page. */
export interface CameBack {
  readonly state: string;
  readonly code?: string;
  readonly error?: string;
  readonly iss?: string;
}

/** The access key by which a page lists and adds users where a name is enough. Every copy of ClearML's web UI has it. */
const PAGES_KEY = "EYVQ385RW7Y2QQUH88CZ7DWIQ1WUHP";
const PAGES_SECRET = "XhkH6a6ds9JBnM_MrahYyYdO-wS2bqFSm8gl-V0UZXH26Ydd6Eyi28TeBEoSr6Z3Bes";

/** Ask the server how people sign in. Throws ServerError. */
export async function findModes(): Promise<Modes> {
  const { basic, provider } = await apiOnce("login.supported_modes", {});
  const { enabled, guest } = basic;
  const isOpen = guest.enabled && guest.username !== undefined && guest.password !== undefined;
  return {
    password: enabled,
    guest: isOpen ? { name: guest.username!, password: guest.password! } : null,
    provider: provider.name ?? null,
  };
}

/** By a name and its password, or an access key and its secret. Throws ServerError. */
export async function signIn(name: string, password: string): Promise<void> {
  await apiOnce("auth.login", {}, { authorization: basic(name, password) });
}

/** By a name alone; somebody new is added. Throws ServerError. */
export async function signInByName(name: string): Promise<void> {
  const authorization = basic(PAGES_KEY, PAGES_SECRET);
  const { users } = await apiOnce("users.get_all", {}, { authorization });
  const id =
    users.find((user) => user.name === name)?.id ??
    (await apiOnce("auth.create_user", { name, role: "user" }, { authorization })).id;
  await apiOnce("auth.login", {}, { authorization, "x-clearml-impersonate-as": id });
}

/** By what follows `#link=` in a link that the server printed. Throws ServerError. */
export async function signInByLink(link: string): Promise<void> {
  await apiOnce("auth.login_by_link", { link });
}

/** Most characters of an address that is kept while one is at the provider. */
const LONGEST_NEXT = 2000;

/** Leave for the provider, which sends the browser back to the sign-in page; `next`: where to go then. Throws ServerError. */
export async function leaveForProvider(next: string): Promise<void> {
  const kept = next.length <= LONGEST_NEXT ? next : "/";
  const { url } = await apiOnce("auth.begin_provider_login", { next: kept });
  location.assign(url);
}

/** Finish what `leaveForProvider` began, and return where to go. Throws ServerError. */
export async function signInByProvider(cameBack: CameBack): Promise<string> {
  return (await apiOnce("auth.finish_provider_login", cameBack)).next;
}

/** What a provider sent the browser back with, if it did, by the query of the sign-in page. */
export function cameBackWith(query: string): CameBack | null {
  const said = new URLSearchParams(query);
  const [state, code, error, iss] = ["state", "code", "error", "iss"].map((name) => said.get(name));
  if (!state || !(code || error)) return null;
  return { state, ...(code ? { code } : { error: error!.slice(0, 200) }), ...(iss && { iss }) };
}

/** Load the pages anew, as the user who has signed in, and go where `pathAfter` says. */
export function goOn(next: string | null): void {
  location.replace(pathAfter(next, location.origin));
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
