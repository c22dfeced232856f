/** How the charts of a page are shown, as the query of the address says it. Pure. */

import { LONGEST_NAME, nameExpressionOf } from "../lib/expressions";
import type { Range } from "./align";
import type { Axis } from "./source";

/** What x is: an axis of the server, or another curve of the same run. */
export type AxisChoice = Axis | { readonly metric: string; readonly variant: string };

export interface View {
  readonly axis: AxisChoice;
  /** As the server knows it, such as "ema:0.9"; "": as it is. */
  readonly smooth: string;
  readonly logX: boolean;
  readonly logY: boolean;
  /** Leave outliers out of the range of y. */
  readonly trimmed: boolean;
  /** What is zoomed to; null: all. */
  readonly range: Range | null;
  /** A regular expression over the names. */
  readonly find: string;
  /** The ids of charts that stand first. */
  readonly pins: readonly string[];
  /** A moment to mark, in milliseconds since 1970. */
  readonly at: number | null;
  /** The id of the chart that fills the page. */
  readonly full: string | null;
}

/** The view of a query; what is not understood is as if it were not there. `usual`: the axis if none is named; with a moment to mark, that is time. */
export function viewOf(query: URLSearchParams, usual: Axis = "iter"): View {
  const log = query.get("log") ?? "";
  const at = Number(query.get("at") ?? NaN);
  const smooth = query.get("smooth") ?? "";
  const marked = query.has("at") && Number.isFinite(at);
  return {
    axis: axisOf(query.get("axis") ?? "", marked ? "timestamp" : usual),
    smooth: /^[a-z_]+(:[0-9.]+)?$/.test(smooth) ? smooth : "",
    logX: log.includes("x"),
    logY: log.includes("y"),
    trimmed: query.has("trim"),
    range: rangeOf(query.get("x") ?? ""),
    find: query.get("find") ?? "",
    pins: query.getAll("pin"),
    at: marked ? at : null,
    full: query.get("full"),
  };
}

type Parameters = Readonly<Record<string, string | number | boolean | readonly string[] | null>>;

/** The parameters of a query for what is changed: the reverse of `viewOf`. */
export function parametersOf(view: Partial<View>, usual: Axis = "iter"): Parameters {
  const result: Record<string, Parameters[string]> = {};
  if (view.axis !== undefined) result["axis"] = view.axis === usual && !view.at ? "" : textOfAxis(view.axis);
  if (view.smooth !== undefined) result["smooth"] = view.smooth;
  if (view.logX !== undefined && view.logY !== undefined)
    result["log"] = `${view.logX ? "x" : ""}${view.logY ? "y" : ""}`;
  if (view.trimmed !== undefined) result["trim"] = view.trimmed;
  if (view.range !== undefined) result["x"] = view.range?.map(shortest).join("..") ?? null;
  if (view.find !== undefined) result["find"] = view.find;
  if (view.pins !== undefined) result["pin"] = view.pins;
  if (view.at !== undefined) result["at"] = view.at;
  if (view.full !== undefined) result["full"] = view.full;
  return result;
}

/** "curve:" and the two names, each without ":" and "/" of its own. */
function textOfAxis(axis: AxisChoice): string {
  if (typeof axis === "string") return axis;
  const bare = (name: string): string => encodeURIComponent(name);
  return `curve:${bare(axis.metric)}/${bare(axis.variant)}`;
}

function axisOf(text: string, usual: Axis): AxisChoice {
  if (text === "iter" || text === "relative" || text === "timestamp") return text;
  const found = /^curve:([^/]*)\/([^/]*)$/.exec(text);
  try {
    return found ? { metric: decodeURIComponent(found[1]!), variant: decodeURIComponent(found[2]!) } : usual;
  } catch {
    return usual; // "%" alone is no encoding
  }
}

function rangeOf(text: string): Range | null {
  const [from, to, ...more] = text.split("..").map((part) => (part ? Number(part) : NaN));
  return from !== undefined && to !== undefined && !more.length && from < to ? [from, to] : null;
}

/** Seven digits tell pixels of any range apart; numbers as large as times keep their whole part. */
function shortest(value: number): string {
  return Math.abs(value) >= 1e6 ? String(Math.round(value)) : String(Number(value.toPrecision(7)));
}

/** The axis that the server is asked for: curves against another one are asked by iteration. */
export function askedAxis(axis: AxisChoice): Axis {
  return typeof axis === "string" ? axis : "iter";
}

/**
 * A function that says whether a name is looked for. What is no regular expression, or may take too long, is looked for
 * as it is.
 */
export function finder(find: string): (name: string) => boolean {
  if (!find) return () => true;
  const expression = nameExpressionOf(find);
  if (expression) return (name) => expression.test(name.slice(0, LONGEST_NAME));
  const text = find.toLowerCase();
  return (name) => name.toLowerCase().includes(text);
}
