/** What the drawn tabs share: a canvas of the right size, colours, and how runs are reached by keys. */

import type { RefObject } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { useSame } from "../../../hooks/same";
import { go } from "../../../state/address";
import { dark } from "../../../state/session";
import { type CompareProps, pointed } from "../props";
import { type Column, mainMetric } from "../runs";
import { scaleOf } from "../scales";
import { gradient } from "./colours";
import { isLog } from "./plots";

/** In the place of a column that colours: each run has its own colour. */
export const BY_RUN = "run";

/** The width of an element in pixels; 0 before it is known. */
export function useWidth(): { element: RefObject<HTMLDivElement | null>; width: number } {
  const element = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (!element.current) return undefined;
    const watcher = new ResizeObserver(([entry]) => setWidth(Math.round(entry?.contentRect.width ?? 0)));
    watcher.observe(element.current);
    return () => watcher.disconnect();
  }, []);
  return { element, width };
}

/** A colour of the theme, such as "--line". */
export function themeColour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** The column that colours runs, and the colour of each row. It is the same object until one of these changes. */
export function useColouring({ view, columns, runs, colours }: CompareProps): {
  by: Column | null;
  of: (row: number) => string;
} {
  const isDark = dark.value;
  const logarithmic = useSame(view.logarithmic);
  const linear = useSame(view.linear);
  return useMemo(() => {
    const chosen = view.colour === null ? mainMetric(columns.values()) : columns.get(view.colour);
    if (!chosen) return { by: null, of: (row: number) => colours.get(runs[row]!.id) ?? "gray" };
    const scale = scaleOf(chosen, isLog(chosen, logarithmic, linear));
    const none = themeColour("--soft");
    const all = chosen.values.map((value) => {
      const place = scale.place(value);
      return place === null ? none : gradient(place, isDark);
    });
    return { by: chosen, of: (row: number) => all[row] ?? none };
  }, [runs, columns, view.colour, logarithmic, linear, colours, isDark]);
}

export function openRun({ runs, project }: CompareProps, row: number): void {
  const run = runs[row];
  if (run) go({ page: "run", project: run.project?.id ?? project, task: run.id, tab: "overview" });
}

/** Arrow keys go from run to run in this order, Enter opens the one that is pointed at. */
export function onRunKeys(props: CompareProps, order: readonly number[]): (event: KeyboardEvent) => void {
  return (event) => {
    const at = order.findIndex((row) => props.runs[row]!.id === pointed.value);
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter" && at >= 0) openRun(props, order[at]!);
    else if (step !== undefined && order.length) {
      const next = at < 0 ? (step > 0 ? 0 : order.length - 1) : (at + step + order.length) % order.length;
      pointed.value = props.runs[order[next]!]!.id;
    } else return;
    event.preventDefault();
  };
}
