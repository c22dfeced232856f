/** Asks the server for lines of a log, for their numbers, and for the hits of a search. */

import { data, dataAddress, get } from "../../../api/client";
import { ONLY_BARS } from "./progress";

/** Characters of a message that comes with others. The rest is asked for when it is unfolded, or its line chosen. */
export const LONGEST = 2000;
/** Numbers of lines in one question: they are in its address. */
const MOST_NUMBERS = 1000;
/** Characters of a message that are shown at most: more take long to lay out. */
export const MOST_SHOWN = 200_000;

export interface Line {
  /** The number of the line; the oldest one has 0. Late lines change the numbers behind them. */
  readonly line: number;
  /** Stays the same, whatever comes. */
  readonly position: string;
  readonly timestamp: number;
  readonly worker: string;
  readonly level: string | null;
  readonly iter: number | null;
  readonly msg: string;
  /** Characters of the whole message. */
  readonly length: number;
}

/** What is searched for, and which lines are looked at. */
export interface Wanted {
  readonly text: string;
  readonly isRegex: boolean;
  readonly levels: readonly string[];
  readonly workers: readonly string[];
  /** Leave out what is nothing but progress bars. */
  readonly withoutBars: boolean;
}

function addressOf(task: string, what: string): string {
  return `/data/tasks/${encodeURIComponent(task)}/${what}`;
}

/** Up to `count` lines from number `first`. An answer ends early after long lines: then it is asked for the rest. */
export async function linesFrom(
  task: string,
  first: number,
  count: number,
  signal: AbortSignal,
  longest = LONGEST,
): Promise<Line[]> {
  const lines: Line[] = [];
  let total = Infinity;
  while (lines.length < count && first + lines.length < total) {
    const query = { offset: first + lines.length, limit: count - lines.length, longest };
    const answer = await get(dataAddress(addressOf(task, "log.json"), query), signal);
    total = Number(answer.headers.get("x-total-count") ?? 0);
    const some = (await answer.json()) as Line[];
    if (!some.length) break;
    lines.push(...some);
  }
  return lines;
}

/** The lines with these ascending numbers. */
export async function linesAt(
  task: string,
  numbers: readonly number[],
  signal: AbortSignal,
  longest = LONGEST,
): Promise<Line[]> {
  const lines: Line[] = [];
  while (lines.length < numbers.length) {
    const query = { line: numbers.slice(lines.length, lines.length + MOST_NUMBERS).map(String), longest };
    const some = await data<Line[]>(addressOf(task, "log.json"), query, signal);
    if (!some.length) break;
    lines.push(...some);
  }
  return lines;
}

/** One line with its message as far as it can be shown. */
export async function longLine(task: string, number: number, signal: AbortSignal): Promise<Line | null> {
  const query = { line: [String(number)], longest: MOST_SHOWN };
  return (await data<Line[]>(addressOf(task, "log.json"), query, signal))[0] ?? null;
}

/** Where a whole message is, as text. */
export function messageAddress(task: string, number: number): string {
  return dataAddress(addressOf(task, "log.txt"), { line: [String(number)] });
}

/** The number of the first line at a time, or of the line with a position, and how many lines there are. */
export function numberOf(
  task: string,
  what: { time: number } | { position: string },
  signal?: AbortSignal,
): Promise<{ line: number; total: number }> {
  return data(addressOf(task, "log/line"), what, signal);
}

export function workersOf(task: string, signal: AbortSignal): Promise<string[]> {
  return data(addressOf(task, "log/workers"), {}, signal);
}

/** Part of a search: hits among the lines before number `end`. */
export interface Hits {
  readonly lines: readonly number[];
  readonly end: number;
  readonly last: string | null;
  readonly ended: boolean;
}

export function hits(task: string, wanted: Wanted, after: string | null, signal: AbortSignal): Promise<Hits> {
  return data(addressOf(task, "log/hits"), { ...queryOf(wanted), after }, signal);
}

/** Where the whole log can be downloaded as text, or what of it is wanted. */
export function downloadOf(task: string, wanted: Wanted | null): string {
  return dataAddress(addressOf(task, "log.txt"), wanted ? queryOf(wanted) : {});
}

function queryOf({
  text,
  isRegex,
  levels,
  workers,
  withoutBars,
}: Wanted): Record<string, string | readonly string[] | null> {
  return {
    ...{ search: text && !isRegex ? text : null, regex: text && isRegex ? text : null },
    ...{ without: withoutBars ? ONLY_BARS : null, level: levels, worker: workers },
  };
}
