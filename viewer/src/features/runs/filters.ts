/** Typed conditions on columns: which tests a column has, and how a condition is said. Pure. */

import { statusText } from "../../lib/status";
import { columnOf, type Kind } from "./columns";
import type { Condition } from "./shown";

/** What a filter of a column asks for. */
export type Asks = "values" | "range" | "times" | "text";

/** The ways in which a column can be filtered, the usual one first. */
export function asksOf(kind: Kind): readonly Asks[] {
  switch (kind) {
    case "choice":
    case "list":
      return ["values"];
    case "parameter":
      return ["values", "range", "text"];
    case "number":
    case "duration":
      return ["range"];
    case "time":
      return ["times"];
    default:
      return ["text", "values"];
  }
}

const SIGNS: Readonly<Record<string, string>> = { "<": "<", "<=": "≤", ">": ">", ">=": "≥" };

/** A condition in words: "lr ≤ 0.01", "status is failed or aborted". */
export function conditionText([column, test, ...values]: Condition, names: ReadonlyMap<string, string>): string {
  const { title, note, kind } = columnOf(column);
  const what = kind === "number" && note ? `${title} ${note}` : title;
  const said = values.map((value) => {
    if (value === null) return "none";
    if (kind === "time" && typeof value === "string")
      return value.replace("T", " ").replace(/(:\d\d)(\.\d+)?Z?$/, "$1");
    if (column === "status" && typeof value === "string") return statusText(value);
    return typeof value === "string" ? (names.get(value) ?? value) : String(value);
  });
  if (test in SIGNS) return `${what} ${SIGNS[test]} ${said[0]}`;
  const few = said.length > 3 ? [...said.slice(0, 2), `${said.length - 2} more`] : said;
  const listed = few.join(test.endsWith("not") ? ", " : " or ");
  if (test === "contains not") return `${what} without “${listed}”`;
  return test === "contains" ? `${what} has “${listed}”` : `${what} ${test} ${listed}`;
}
