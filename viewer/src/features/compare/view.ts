/** What the page of a comparison shows, as its address says it. Pure. */

import type { Parameters } from "../../state/query";
import { type Brush, brushOf, brushText } from "./brush";
import { NUMBERS, type Number_ } from "./runs";

export const TABS = ["curves", "table", "differences", "parallel", "scatter", "plots", "images"] as const;
export type CompareTab = (typeof TABS)[number];

export const SPREADS = ["deviation", "quartiles", "extremes"] as const;
export type Spread = (typeof SPREADS)[number];

export interface View {
  /** Ids of runs. */
  readonly tasks: readonly string[];
  /** A filter in the place of ids, as for the table of a project. */
  readonly where: string | null;
  readonly tab: CompareTab;
  /** The run that others are compared with. */
  readonly base: string | null;
  /** The beginnings of the ids of runs that are hidden. */
  readonly hide: readonly string[];
  readonly brush: readonly Brush[];
  /** Columns with a log axis, and with a linear one, where that is not what they would have. */
  readonly logarithmic: readonly string[];
  readonly linear: readonly string[];
  /** Columns that are axes of the parallel coordinates; none: the usual ones. */
  readonly axes: readonly string[];
  readonly across: string | null;
  readonly up: string | null;
  readonly colour: string | null;
  /** A column: runs with the same value in it are one curve. */
  readonly group: string | null;
  /** Into how many ranges of values runs are grouped; 0: by each value. Null: as many as there should be. */
  readonly bins: number | null;
  readonly spread: Spread;
  /** A column of the table; `-` before it means descending. */
  readonly sort: string | null;
  readonly number: Number_;
  /** Metrics whose best value is the other one than their names tell: `loss/train`. */
  readonly flip: readonly string[];
  /** Whether also what does not differ is shown. */
  readonly all: boolean;
  /** A text that is compared line by line, and with which run. */
  readonly text: string | null;
  readonly other: string | null;
  /** The image over the whole window. */
  readonly open: string | null;
  /** The iteration of plots and images; null: the newest. */
  readonly iter: number | null;
  /** What names of columns and rows must have in them. */
  readonly only: string;
}

/** Digits of an id that tell it from others. */
const SHORT = 8;

export function viewOf(query: URLSearchParams): View {
  const iter = query.get("iter");
  const bins = query.get("bins");
  return {
    tasks: idsOf(query.get("tasks") ?? ""),
    where: query.get("where"),
    tab: oneOf(TABS, query.get("tab")),
    base: query.get("base"),
    hide: idsOf(query.get("hide") ?? ""),
    brush: query
      .getAll("brush")
      .map(brushOf)
      .filter((brush) => brush !== null),
    logarithmic: query.getAll("logarithmic"),
    linear: query.getAll("linear"),
    axes: query.getAll("axes"),
    across: query.get("across"),
    up: query.get("up"),
    colour: query.get("colour"),
    group: query.get("group"),
    bins: bins !== null && /^\d{1,2}$/.test(bins) && bins !== "1" ? Number(bins) : null,
    spread: oneOf(SPREADS, query.get("spread")),
    sort: query.get("sort"),
    number: oneOf(NUMBERS, query.get("number")),
    flip: query.getAll("flip"),
    all: query.get("all") === "1",
    text: query.get("text"),
    other: query.get("other"),
    open: query.get("open"),
    iter: iter !== null && /^-?\d+$/.test(iter) ? Number(iter) : null,
    only: query.get("only") ?? "",
  };
}

/** The parameters of an address for changes of a view: the reverse of `viewOf`. */
export function parametersOf(change: Partial<View>): Parameters {
  const result: Record<string, string | readonly string[] | null> = {};
  for (const [name, value] of Object.entries(change) as [keyof View, View[keyof View]][]) {
    result[name] = parameterOf(name, value);
  }
  return result;
}

function parameterOf(name: keyof View, value: View[keyof View]): string | readonly string[] | null {
  if (name === "brush") return (value as readonly Brush[]).map(brushText);
  if (name === "tasks" || name === "hide") return (value as readonly string[]).join(",");
  if (name === "all") return value ? "1" : null;
  if (name === "tab" || name === "spread" || name === "number") {
    const usual = { tab: TABS[0], spread: SPREADS[0], number: NUMBERS[0] }[name];
    return value === usual ? null : (value as string);
  }
  return Array.isArray(value) ? (value as readonly string[]) : value === null ? null : String(value as string | number);
}

/** `hide`: the beginnings of the ids of runs that are hidden. */
export function isHidden(hide: readonly string[], id: string): boolean {
  return hide.some((start) => id.startsWith(start));
}

/** The hidden runs when these are hidden, or shown again. */
export function hiding(view: View, ids: readonly string[], hidden: boolean): string[] {
  const others = view.hide.filter((start) => !ids.some((id) => id.startsWith(start)));
  return hidden ? [...others, ...ids.map((id) => id.slice(0, SHORT))] : others;
}

function idsOf(text: string): string[] {
  return [
    ...new Set(
      text
        .split(",")
        .map((id) => id.trim())
        .filter(Boolean),
    ),
  ];
}

function oneOf<T extends string>(known: readonly [T, ...T[]], given: string | null): T {
  return known.find((one) => one === given) ?? known[0];
}

/** The parameters for an address of ClearML's web UI, behind `;ids=`: `a,b/scalars/graph`. */
export function parametersOfClearml(given: string): Parameters {
  const [ids = "", ...rest] = given.split("/");
  const screen = rest.join("/");
  const tab = CLEARML_TABS.find(([start]) => screen.startsWith(start))?.[1];
  return { tasks: ids, ...parametersOf({ tab: tab ?? TABS[0] }) };
}

const CLEARML_TABS: readonly (readonly [string, CompareTab])[] = [
  ["hyper-params/graph", "parallel"],
  ["hyper-params/scatter", "scatter"],
  ["hyper-params", "differences"],
  ["details", "differences"],
  ["models-details", "differences"],
  ["scalars/values", "table"],
  ["scalars", "curves"],
  ["metrics-plots", "plots"],
  ["debug-images", "images"],
];
