/**
 * Where the focus is after going to another page: on its main heading, so that a screen reader says where one is.
 *
 * The heading may come later than the page, as its name is asked of the server. Whoever has set the focus meanwhile, such
 * as a page with a field to type in, keeps it.
 */

import { useEffect, useRef } from "preact/hooks";

import type { Place } from "../routes";

/** How long, in ms, a heading is waited for. */
const LONGEST = 10_000;

export function useArrival(place: Place): void {
  const where = JSON.stringify({ ...place, tab: null });
  const first = useRef(true);
  useEffect(() => {
    if (first.current) {
      first.current = false; // the document was just loaded: the browser says its title
      return;
    }
    const main = document.getElementById("content");
    if (!main) return;
    if (document.activeElement !== main && main.contains(document.activeElement)) return;
    main.focus({ preventScroll: true });
    if (focusHeading(main)) return;
    const watch = new MutationObserver(() => focusHeading(main) && stop());
    const timer = setTimeout(stop, LONGEST);
    watch.observe(main, { childList: true, subtree: true });
    return stop;
    function stop(): void {
      clearTimeout(timer);
      watch.disconnect();
    }
  }, [where]);
}

/** Focus the heading, unless the focus has moved on; false if there is none yet. */
function focusHeading(main: HTMLElement): boolean {
  if (document.activeElement !== main) return true;
  const heading = main.querySelector("h1");
  if (!heading) return false;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  return true;
}
