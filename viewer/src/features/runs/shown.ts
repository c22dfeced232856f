/**
 * What the table of runs shows, as its address says it. Pure: parameters of the query ↔ one object.
 *
 *     ?sort=-min:loss/train&where=[["tags","is","best"]]&group=user&cols=name,status,hyperparams.Args/lr
 */

import { ALL } from "../../routes";

/** `[column, test, value, …]`, as the server takes it in `where={"conditions": […]}`. */
export type Condition = readonly [column: string, test: string, ...values: (string | number | null)[]];

export interface Shown {
  readonly columns: readonly string[];
  /** The column that rows are sorted by, with "-" before it for descending. */
  readonly sort: string;
  readonly search: string;
  readonly conditions: readonly Condition[];
  /** The column whose values group the rows, or "". */
  readonly group: string;
  /** Also runs of sub-projects. */
  readonly inside: boolean;
  /** Archived runs instead of the others. */
  readonly archived: boolean;
  /** The curve that is drawn in each row, as metric/variant, or "". */
  readonly curve: string;
  readonly pinned: readonly string[];
  readonly hidden: readonly string[];
  /** Colours of rows: the number of one by the run's id. */
  readonly colours: Readonly<Record<string, number>>;
}

export type Change = (part: Partial<Shown>) => void;

export const USUAL_COLUMNS = ["name", "status", "tags", "user", "created", "active_duration", "last_iteration"];
/** In a narrow window, others are left out unless they are chosen. */
export const FEW_COLUMNS = ["name", "status", "created"];
export const USUAL_SORT = "-created";
/** How many colours a row may have. */
export const COLOURS = 8;

export const USUAL: Shown = {
  columns: USUAL_COLUMNS,
  sort: USUAL_SORT,
  search: "",
  conditions: [],
  group: "",
  inside: true,
  archived: false,
  curve: "",
  pinned: [],
  hidden: [],
  colours: {},
};

/** What a query says; what it does not say, or says wrong, is as usual. */
export function shownOf(query: URLSearchParams, usualColumns: readonly string[] = USUAL_COLUMNS): Shown {
  const columns = namesOf(query.get("cols") ?? "");
  return {
    columns: columns.length ? columns : usualColumns,
    sort: query.get("sort") || USUAL_SORT,
    search: query.get("q") ?? "",
    conditions: conditionsOf(query.get("where")),
    group: query.get("group") ?? "",
    inside: query.get("sub") !== "0",
    archived: query.get("archived") === "1",
    curve: query.get("curve") ?? "",
    pinned: namesOf(query.get("pin") ?? ""),
    hidden: namesOf(query.get("hide") ?? ""),
    colours: coloursOf(query.get("colour") ?? ""),
  };
}

/** The parameters that say it: what is as usual is left out. */
export function parametersOf(shown: Partial<Shown>): Record<string, string | null> {
  const said: Record<string, string | null> = {};
  if (shown.columns) said["cols"] = shown.columns.length ? namesText(shown.columns) : null;
  if (shown.sort !== undefined) said["sort"] = shown.sort === USUAL_SORT ? null : shown.sort;
  if (shown.search !== undefined) said["q"] = shown.search || null;
  if (shown.conditions) said["where"] = shown.conditions.length ? JSON.stringify(shown.conditions) : null;
  if (shown.group !== undefined) said["group"] = shown.group || null;
  if (shown.inside !== undefined) said["sub"] = shown.inside ? null : "0";
  if (shown.archived !== undefined) said["archived"] = shown.archived ? "1" : null;
  if (shown.curve !== undefined) said["curve"] = shown.curve || null;
  if (shown.pinned) said["pin"] = namesText(shown.pinned) || null;
  if (shown.hidden) said["hide"] = namesText(shown.hidden) || null;
  if (shown.colours) {
    said["colour"] = namesText(Object.entries(shown.colours).map(([id, colour]) => `${id}.${colour}`)) || null;
  }
  return said;
}

/** Names with commas between them; a name with a comma in it stands in double quotes. */
export function namesOf(text: string): string[] {
  const names = [""];
  let quoted = false;
  for (const letter of text) {
    if (letter === '"') quoted = !quoted;
    else if (letter === "," && !quoted) names.push("");
    else names[names.length - 1] += letter;
  }
  return [...new Set(names.map((name) => name.trim()).filter(Boolean))];
}

/** The reverse of `namesOf`. Quotes cannot be in a name; the server does not know them either. */
export function namesText(names: readonly string[]): string {
  return names.map((name) => (name.includes(",") ? `"${name}"` : name)).join(",");
}

function conditionsOf(text: string | null): Condition[] {
  if (!text) return [];
  try {
    const given: unknown = JSON.parse(text);
    return Array.isArray(given) ? given.filter(isCondition) : [];
  } catch {
    return [];
  }
}

function isCondition(given: unknown): given is Condition {
  if (!Array.isArray(given) || given.length < 3) return false;
  const [column, test, ...values] = given as unknown[];
  const known = values.every((value) => value === null || typeof value === "string" || typeof value === "number");
  return typeof column === "string" && typeof test === "string" && known;
}

function coloursOf(text: string): Record<string, number> {
  const colours: Record<string, number> = {};
  for (const one of namesOf(text)) {
    const [id, colour] = one.split(".");
    const number = Number(colour);
    if (id && Number.isInteger(number) && number >= 0 && number < COLOURS) colours[id] = number;
  }
  return colours;
}

/** The filter for the server: what is shown, and further conditions such as those of a group. */
export function whereOf(shown: Shown, more: readonly Condition[] = []): string {
  const archived: Condition = ["system_tags", shown.archived ? "is" : "is not", "archived"];
  const conditions = [...shown.conditions, archived, ...more];
  return JSON.stringify({ conditions, ...(shown.search.trim() && { search_text: shown.search.trim() }) });
}

/** The parameters of a comparison of all runs that match, of a group's if its condition is given, grouped as here. */
export function comparison(
  project: string,
  shown: Shown,
  more: readonly Condition[] = [],
): Record<string, string | null> {
  const visible: Condition[] = shown.hidden.length ? [["id", "is not", ...shown.hidden]] : [];
  const here: Condition[] = shown.inside || project === ALL ? [] : [["project", "is", project]];
  const grouped = more.length === 0 && (shown.group === "status" || shown.group.startsWith("hyperparams."));
  return { where: whereOf(shown, [...here, ...visible, ...more]), group: grouped ? shown.group : null };
}

/** The order of a column's click: first as numbers and times are wanted most, greatest or newest first; then reversed. */
export function nextSort(sort: string, column: string, textual: boolean): string {
  const first = textual ? column : `-${column}`;
  const second = textual ? `-${column}` : column;
  return sort === first ? second : first;
}

/** A list with an entry moved before another one, or to the end. */
export function moved(names: readonly string[], name: string, before: string | null): string[] {
  if (name === before) return [...names];
  const rest = names.filter((one) => one !== name);
  const at = before === null ? -1 : rest.indexOf(before);
  return at < 0 ? [...rest, name] : [...rest.slice(0, at), name, ...rest.slice(at)];
}
