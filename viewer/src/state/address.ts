/**
 * The address is the state of a page: the path says what it shows, the query how. Everything else is derived from it.
 *
 * `go` is for what a user means to do (it can be gone back from); `adjust` is for what follows from many small moves,
 * such as dragging, and replaces the last address.
 */

import { computed, signal } from "@preact/signals";

import { type Place, pathOf, placeOf } from "../routes";
import { changed, type Parameters } from "./query";

export type { Parameters } from "./query";

const address = signal(location.pathname + location.search);

addEventListener("popstate", () => {
  forget();
  address.value = location.pathname + location.search;
});

/** The address of what is shown. The browser may show an older one for a moment (`replaceSoon`). */
export const here = computed(() => address.value);

/** What is shown. It is the same object while the path is the same. */
export const place = computed<Place>(() => placeOf(path.value));
const path = computed(() => address.value.split("?", 1)[0] ?? "/");

/** How it is shown: the parameters of the query. */
export const query = computed(() => new URLSearchParams(address.value.split("?").slice(1).join("?")));

/** The address of a place with parameters. */
export function addressOf(target: Place, parameters?: Parameters): string {
  return parameters ? withQuery(pathOf(target), changed(new URLSearchParams(), parameters)) : pathOf(target);
}

/** Go to a place, or to an address of this server. */
export function go(target: Place | string, parameters: Parameters = {}): void {
  const next = typeof target === "string" ? target : addressOf(target, parameters);
  if (next !== address.value) push(next);
  address.value = next;
  scrollTo(0, 0);
}

/** Show another address of this server in the place of this one, which can't be gone back to. */
export function replace(next: string): void {
  forget();
  history.replaceState(null, "", next);
  address.value = next;
}

/** Load the page anew, with what it shows now: browsers choose the address before they tell the page that it is left. */
export function reload(): void {
  replaceNow();
  location.reload();
}

/** Change some parameters of the address; the others stay. */
export function adjust(parameters: Parameters, options: { push?: boolean } = {}): void {
  const next = withQuery(path.value, changed(query.value, parameters));
  if (next === address.value) return;
  if (options.push) push(next);
  else replaceSoon();
  address.value = next;
}

function push(next: string): void {
  replaceNow(); // so that whoever goes back sees what was there
  history.pushState(null, "", next);
}

function withQuery(path: string, parameters: URLSearchParams): string {
  const text = parameters.toString().replaceAll("%2F", "/").replaceAll("%3A", ":").replaceAll("%2C", ",");
  return text ? `${path}?${text}` : path;
}

/**
 * Browsers refuse more than some hundred changes of the address in half a minute. So they get one after a quarter of a
 * second without a further one, or when the page is hidden or left.
 */
let replacing: ReturnType<typeof setTimeout> | undefined;
function replaceSoon(): void {
  forget();
  replacing = setTimeout(replaceNow, 250);
}

function replaceNow(): void {
  if (replacing === undefined) return;
  forget();
  history.replaceState(null, "", address.value);
}

/** Do not give the browser the address that it was to get soon. */
function forget(): void {
  clearTimeout(replacing);
  replacing = undefined;
}

addEventListener("pagehide", replaceNow);
document.addEventListener("visibilitychange", replaceNow);
