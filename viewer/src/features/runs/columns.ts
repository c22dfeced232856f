/**
 * Columns of the table of runs. They are named as the server names them: `status`, `hyperparams.Args/lr`,
 * `min:loss/train`. Pure.
 */

import { counted, duration, short } from "../../lib/times";

/** How a column is shown, aligned and filtered. "choice": one of few texts. */
export type Kind = "text" | "choice" | "list" | "number" | "time" | "duration" | "parameter" | "curve";

export interface Column {
  readonly name: string;
  /** Its heading, and what stands small behind it. */
  readonly title: string;
  readonly note: string;
  readonly kind: Kind;
  /** Pixels, if the user did not choose others. */
  readonly width: number;
}

const FIELDS: Readonly<Record<string, readonly [title: string, kind: Kind, width: number]>> = {
  name: ["Name", "text", 300],
  status: ["Status", "choice", 116],
  project: ["Project", "choice", 180],
  tags: ["Tags", "list", 170],
  user: ["User", "choice", 120],
  type: ["Type", "choice", 110],
  comment: ["Comment", "text", 220],
  created: ["Created", "time", 130],
  started: ["Started", "time", 130],
  completed: ["Completed", "time", 130],
  last_update: ["Updated", "time", 130],
  status_changed: ["Status changed", "time", 130],
  active_duration: ["Run time", "duration", 110],
  last_iteration: ["Iteration", "number", 100],
  last_worker: ["Worker", "choice", 150],
  status_message: ["Status message", "text", 200],
  status_reason: ["Status reason", "text", 200],
  parent: ["Parent", "choice", 260],
  id: ["ID", "text", 270],
};
/** Numbers of a curve, and what they are called. */
export const NUMBERS = {
  last: "last",
  min: "least",
  max: "greatest",
  mean: "mean",
  first: "first",
  count: "points",
  min_iter: "least at",
  max_iter: "greatest at",
} as const;
export const FIELD_NAMES = Object.keys(FIELDS);

/** The column that draws the curve `metric/variant`; it is no column of the server. */
export const CURVE = "curve:";

export function columnOf(name: string): Column {
  const field = FIELDS[name];
  if (field) return { name, title: field[0], note: "", kind: field[1], width: field[2] };
  if (name.startsWith(CURVE))
    return { name, title: name.slice(CURVE.length), note: "curve", kind: "curve", width: 140 };
  if (name.startsWith("hyperparams.")) {
    const [section = "", ...rest] = name.slice("hyperparams.".length).split("/");
    return { name, title: rest.join("/") || section, note: section, kind: "parameter", width: 124 };
  }
  const [prefix = "", ...series] = name.split(":");
  if (prefix in NUMBERS && series.length) {
    return { name, title: series.join(":"), note: NUMBERS[prefix as keyof typeof NUMBERS], kind: "number", width: 150 };
  }
  return { name, title: name, note: "", kind: "text", width: 140 };
}

/** Slashes at which the name of a metric may end, as on the server. */
const MOST_READINGS = 8;

/**
 * What `metric/variant` may stand for, as both may have slashes. Of each run, the first of these counts that it has, as on
 * the server: `loss/train/top1` is `top1` of `loss/train`, or `train/top1` of `loss`.
 */
export function readingsOf(curve: string): readonly (readonly [metric: string, variant: string])[] {
  const parts = curve.split("/");
  const ends = parts.slice(1).map((_, end) => end + 1);
  return ends
    .reverse()
    .slice(0, MOST_READINGS)
    .map((end) => [parts.slice(0, end).join("/"), parts.slice(end).join("/")]);
}

/** The columns with another one: a number of a curve or a parameter behind the last of its kind, others at the end. */
export function withColumn(columns: readonly string[], name: string): readonly string[] {
  const { kind } = columnOf(name);
  const isAlike = (one: string): boolean => !(one in FIELDS) && columnOf(one).kind === kind;
  const last = columns.reduce((found, one, place) => (isAlike(one) ? place : found), -1);
  const at = name in FIELDS || last < 0 ? columns.length : last + 1;
  return [...columns.slice(0, at), name, ...columns.slice(at)];
}

/** Whether a click on the column sorts from A to Z first. */
export function isTextual(kind: Kind): boolean {
  return kind === "text" || kind === "choice" || kind === "list" || kind === "parameter";
}

/**
 * Whether each value fits into the usual width: short texts of our own. Cells of others are cut off, which takes the browser
 * long: it draws each of them on its own.
 */
export function isShort({ name, kind, width }: Column, shown: number): boolean {
  return shown >= width && (name === "status" || kind === "time" || kind === "duration" || kind === "number");
}

export function isRight(kind: Kind): boolean {
  return kind === "number" || kind === "duration";
}

/** What a cell says as text. Names of users and projects come from `names`, by id. */
export function textOf(kind: Kind, value: unknown, names: ReadonlyMap<string, string> = new Map()): string {
  if (value === null || value === undefined || value === "") return "";
  if (typeof value === "number") {
    if (kind === "duration") return duration(value * 1000);
    return Number.isInteger(value) && Math.abs(value) < 1e15 ? counted(value) : short(value);
  }
  if (typeof value === "string") {
    if (kind === "number") return value === "Infinity" ? "∞" : value === "-Infinity" ? "−∞" : value;
    return names.get(value) ?? value;
  }
  if (Array.isArray(value)) return value.filter((one) => typeof one === "string").join(", ");
  return JSON.stringify(value);
}
