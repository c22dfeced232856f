/** Whether an element is on the screen, or near it. One observer serves all. */

import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

const told = new WeakMap<Element, (seen: boolean) => void>();
const observer = new IntersectionObserver(
  (entries) => {
    for (const entry of entries) told.get(entry.target)?.(entry.isIntersecting);
  },
  { rootMargin: "150px 0px" },
);

export function useOnScreen<T extends Element>(): readonly [RefObject<T | null>, boolean] {
  const element = useRef<T | null>(null);
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    const observed = element.current!;
    told.set(observed, setSeen);
    observer.observe(observed);
    return () => observer.unobserve(observed);
  }, []);
  return [element, seen];
}
