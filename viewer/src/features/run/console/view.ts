/** What of a console is in the address: the search, the filter, and the line at the top. Pure. */

import type { Wanted } from "./ask";

export interface ConsoleView {
  readonly text: string;
  readonly isRegex: boolean;
  /** Only hits are shown; otherwise they are marked. */
  readonly only: boolean;
  /** One of LEVELS. */
  readonly level: string;
  readonly workers: readonly string[];
}

/** Choices of levels: their names, and the levels of lines. Loggers and terminals name them differently. */
export const LEVELS: Readonly<Record<string, { label: string; levels: readonly string[] }>> = {
  "": { label: "All levels", levels: [] },
  warning: { label: "Warnings and errors", levels: ["warning", "warn", "error", "err", "critical", "fatal"] },
  error: { label: "Errors", levels: ["error", "err", "critical", "fatal"] },
  info: { label: "Info", levels: ["info"] },
  debug: { label: "Debug", levels: ["debug", "trace"] },
};

export function viewOf(query: URLSearchParams): ConsoleView {
  const level = query.get("level") ?? "";
  return {
    text: query.get("q") ?? "",
    isRegex: query.get("regex") === "1",
    only: query.get("only") === "1",
    level: level in LEVELS ? level : "",
    workers: query.getAll("worker"),
  };
}

/**
 * Which lines are shown; null: all. Among errors there are no progress bars: they are written to where errors are
 * written, too, so their level says nothing.
 */
export function filterOf({ text, isRegex, only, level, workers }: ConsoleView): Wanted | null {
  const levels = LEVELS[level]?.levels ?? [];
  if (!levels.length && !workers.length && !(only && text)) return null;
  return { text: only ? text : "", isRegex, levels, workers, withoutBars: levels.includes("error") };
}

/** Which lines are marked; null: none. */
export function marksOf({ text, isRegex, only, level, workers }: ConsoleView): Wanted | null {
  const levels = LEVELS[level]?.levels ?? [];
  return text && !only ? { text, isRegex, levels, workers, withoutBars: levels.includes("error") } : null;
}

/** The kind of a level, for its colour. */
export function kindOf(level: string | null): "error" | "warning" | "debug" | undefined {
  if (level === null || level === "info") return undefined;
  if (LEVELS["error"]!.levels.includes(level)) return "error";
  if (LEVELS["warning"]!.levels.includes(level)) return "warning";
  return LEVELS["debug"]!.levels.includes(level) ? "debug" : undefined;
}

/** "14:03:07.512", of a timestamp in milliseconds, in the browser's zone. */
export function clock(timestamp: number): string {
  const date = new Date(timestamp);
  if (Number.isNaN(date.getTime())) return "";
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}
