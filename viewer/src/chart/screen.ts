/** Whether an element is on the screen, or near it. One observer serves all. */

import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

const told = new WeakMap<Element, (width: number | null) => void>();
const observer = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) told.get(entry.target)?.(entry.isIntersecting ? entry.boundingClientRect.width : null);
  },
  { rootMargin: "150px 0px" },
);

/**
 * How wide the element was when it came onto the screen; null while it is not there. The observer knows the width: a
 * chart that measures itself makes the browser lay out the page anew, once for each chart.
 */
export function useOnScreen<T extends Element>(): readonly [RefObject<T | null>, number | null] {
  const element = useRef<T | null>(null);
  const [width, setWidth] = useState<number | null>(null);
  useEffect(() => {
    const observed = element.current!;
    told.set(observed, setWidth);
    observer.observe(observed);
    return () => observer.unobserve(observed);
  }, []);
  return [element, width];
}
