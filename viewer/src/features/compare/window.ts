/** Which rows of a long list are in sight: only those are in the document. */

import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

export interface Window {
  /** For the element that scrolls. */
  readonly element: RefObject<HTMLDivElement | null>;
  readonly first: number;
  /** Behind the last row in sight. */
  readonly behind: number;
}

/** Rows above and below those in sight, so that none is missing while the list moves. */
const SPARE = 8;

/** Rows of one height in pixels, `top` pixels below the beginning of what scrolls. */
export function useWindow(rows: number, height: number, top = 0): Window {
  const element = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState<readonly [number, number]>([0, 2 * SPARE]);
  useEffect(() => {
    const list = element.current;
    if (!list) return undefined;
    const look = (): void => {
      const first = Math.max(0, Math.floor((list.scrollTop - top) / height) - SPARE);
      const behind = Math.ceil((list.scrollTop - top + list.clientHeight) / height) + SPARE;
      setSeen((before) => (before[0] === first && before[1] === behind ? before : [first, behind]));
    };
    const watcher = new ResizeObserver(look);
    watcher.observe(list);
    list.addEventListener("scroll", look, { passive: true });
    return () => {
      watcher.disconnect();
      list.removeEventListener("scroll", look);
    };
  }, [height, top]);
  const behind = Math.min(rows, seen[1]);
  return { element, first: Math.min(seen[0], Math.max(0, behind - 1)), behind };
}
