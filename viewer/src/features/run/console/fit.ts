/** How many characters of a message fit into a row of the console. */

import { useCallback, useRef, useState } from "preact/hooks";

import type { Columns } from "./columns";

/** Pixels beside the text of a line, as the styles say: around its number and its time, and at both ends. */
const NUMBER_SPACE = 18;
const TIME_SPACE = 12;
const LINE_SPACE = 3 + 70;

/** How many characters of a message fit into a row, and the reference of the element in which the rows are. */
export function useFit(columns: Columns, digits: number): readonly [number, (element: HTMLElement | null) => void] {
  const [[width, character], setSize] = useState<readonly [number, number]>([800, 7]);
  const watch = useRef<ResizeObserver>(undefined);
  const reference = useCallback((element: HTMLElement | null) => {
    watch.current?.disconnect();
    if (!element) return;
    const list = element.firstElementChild as HTMLElement;
    const probe = document.createElement("canvas").getContext("2d")!;
    watch.current = new ResizeObserver(() => {
      const { fontSize, fontFamily } = getComputedStyle(list);
      probe.font = `${fontSize} ${fontFamily}`;
      setSize([list.clientWidth, probe.measureText("0".repeat(100)).width / 100]);
    });
    watch.current.observe(list);
  }, []);
  const beside =
    (columns.numbers ? digits * character + NUMBER_SPACE : 0) + (columns.times ? 12 * character + TIME_SPACE : 0);
  return [Math.max(20, Math.floor((width - beside - LINE_SPACE) / character)), reference];
}
