/** Who is signed in, and what this browser remembers: the theme, and what a user chose on a page. */

import { effect, signal } from "@preact/signals";

import { api, ServerError, signedIn } from "../api/client";
import type { CurrentUser } from "../api/endpoints";
import { reload } from "./address";

/** null until it is known, or if nobody is signed in. */
export const user = signal<CurrentUser | null>(null);

/** Under this name the browser remembers who is signed in, so that its other tabs hear of it. */
const WHO = "user";
/** Who is signed in as far as this page has heard. */
let known = remembered<string | null>(WHO, null);
effect(() => {
  if (signedIn.value) return;
  user.value = null;
  if (remembered(WHO, null) === known) remember(WHO, undefined); // else somebody has signed in by another tab since
  known = null;
});

/** Ask who is signed in; `signedIn` tells whether anybody is. Throws ServerError if the server does not answer. */
export async function findUser(): Promise<void> {
  try {
    user.value = (await api("users.get_current_user", {})).user;
    remember(WHO, (known = user.value.id));
    signedIn.value = true;
  } catch (error) {
    if (!(error instanceof ServerError) || error.status !== 401) throw error;
  }
}

/**
 * The cookie and this sign-in end, also at the provider if the server says so. The pages are loaded anew, so that
 * nothing of this user stays. Throws ServerError.
 */
export async function signOut(): Promise<void> {
  const { url } = await api("login.logout", {});
  remember(WHO, undefined); // other tabs hear of it
  location.assign(url ?? "/sign-in");
}

/**
 * Another tab has signed out, or somebody has signed in there. A sign-out loads nothing anew, as somebody may already
 * type a password here; another user does. What tabs hear may be late, so the server is asked who it is.
 */
function heard(): void {
  const isKnown = user.value !== null || !signedIn.value;
  const who = remembered<string | null>(WHO, null);
  if (!isKnown || who === (user.value?.id ?? null)) return;
  if (user.value && who) return reload();
  signedIn.value = false;
  findUser().catch(() => undefined); // without an answer the page for signing in stays
}
addEventListener("storage", (event) => event.key === keyOf(WHO) && heard());
// The browser kept the page as it was, and goes back to it.
addEventListener("pageshow", (event) => event.persisted && heard());

/** Whether who is signed in may change a thing: guests change nothing, and nobody what another company shares. */
export function mayEdit(thing: { readonly company?: { readonly id: string } | null }): boolean {
  const who = user.value;
  if (!who || who.role === "guest") return false;
  return !thing.company?.id || thing.company.id === who.company.id;
}

export type Theme = "system" | "light" | "dark";

/** "system" follows the computer. */
export const theme = signal<Theme>(remembered<Theme>("theme", "system"));

const darkSystem = matchMedia("(prefers-color-scheme: dark)");
/** Whether the page is dark now: figures and charts follow it. */
export const dark = signal(false);

effect(() => {
  const chosen = theme.value;
  remember("theme", chosen);
  applyTheme();
});
darkSystem.addEventListener("change", applyTheme);

function applyTheme(): void {
  dark.value = theme.peek() === "dark" || (theme.peek() === "system" && darkSystem.matches);
  document.documentElement.dataset["theme"] = dark.value ? "dark" : "light";
}

/** What was remembered under a name, or `otherwise`. */
export function remembered<T>(name: string, otherwise: T): T {
  try {
    const text = localStorage.getItem(keyOf(name));
    return text === null ? otherwise : (JSON.parse(text) as T);
  } catch {
    return otherwise; // the browser keeps nothing, or something else wrote it
  }
}

/** Remember a value, such as an order of charts, in this browser; undefined forgets it. */
export function remember(name: string, value: unknown): void {
  try {
    if (value === undefined) localStorage.removeItem(keyOf(name));
    else localStorage.setItem(keyOf(name), JSON.stringify(value));
  } catch {
    // The browser keeps nothing, or is full: the choice holds until the page is left.
  }
}

function keyOf(name: string): string {
  return `viewer.${name}`;
}
