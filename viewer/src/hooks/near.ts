/** Whether an element is on the screen, or near it. */

import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

/** True from the moment when the element first comes near the screen. */
export function useSeen(element: RefObject<HTMLElement | null>, margin = "600px"): boolean {
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    if (seen || !element.current) return;
    const watch = new IntersectionObserver((entries) => entries.at(-1)!.isIntersecting && setSeen(true), {
      rootMargin: margin,
    });
    watch.observe(element.current);
    return () => watch.disconnect();
  }, [seen, element, margin]);
  return seen;
}
