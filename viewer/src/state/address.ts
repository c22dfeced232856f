/**
 * The address is the state of a page: the path says what it shows, the query how. Everything else is derived from it.
 *
 * `go` is for what a user means to do (it can be gone back from); `adjust` is for what follows from many small moves,
 * such as dragging, and replaces the last address.
 */

import { computed, signal } from "@preact/signals";

import { pathOf, placeOf, type Place } from "../routes";
import { changed, type Parameters } from "./query";

export type { Parameters } from "./query";

const address = signal(location.pathname + location.search);

addEventListener("popstate", () => {
  address.value = location.pathname + location.search;
});

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
  if (next !== address.value) history.pushState(null, "", next);
  address.value = next;
  scrollTo(0, 0);
}

/** Show another address of this server in the place of this one, which can't be gone back to. */
export function replace(next: string): void {
  history.replaceState(null, "", next);
  address.value = next;
}

/** Change some parameters of the address; the others stay. */
export function adjust(parameters: Parameters, { push = false }: { push?: boolean } = {}): void {
  const next = withQuery(path.value, changed(query.value, parameters));
  if (next === address.value) return;
  if (push) history.pushState(null, "", next);
  else replaceSoon(next);
  address.value = next;
}

function withQuery(path: string, parameters: URLSearchParams): string {
  const text = parameters.toString().replaceAll("%2F", "/").replaceAll("%3A", ":").replaceAll("%2C", ",");
  return text ? `${path}?${text}` : path;
}

/** Browsers refuse more than some hundred changes of the address in half a minute: one in a quarter of a second is. */
let replacing: ReturnType<typeof setTimeout> | undefined;
function replaceSoon(next: string): void {
  clearTimeout(replacing);
  replacing = setTimeout(() => {
    if (address.value === next) history.replaceState(null, "", next);
  }, 250);
}
