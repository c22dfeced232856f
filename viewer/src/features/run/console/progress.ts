/**
 * Progress bars: what a terminal shows of lines that overwrite themselves, and which lines are states of one bar. Pure.
 *
 * tqdm writes `\r 10%|█▏   | 10/100 [00:01<00:09, 9.9it/s]` again and again. Some of that reaches the server as one line
 * with many states, some as many lines.
 */

import { plain } from "./ansi";

/** The text with each line's last state: "a\rbc\r" → "bc". */
export function lastStates(text: string): string {
  if (!text.includes("\r")) return text;
  return text.split("\n").map(lastState).join("\n");
}

function lastState(line: string): string {
  const states = line.split("\r");
  for (let n = states.length - 1; n > 0; n--) if (plain(states[n]!).trim()) return states[n]!;
  return states[0]!;
}

/** The text with each state as a line of its own: "a\rbc" → "a\nbc". */
export function allStates(text: string): string {
  return text.replace(/\r\n?/g, "\n");
}

/** A state of a bar: which bar it is, and how far it got. */
export interface BarState {
  readonly bar: string;
  readonly done: number;
}

/** "train:  10%|█   | 10/100 [00:01<00:09, 9.9it/s]" */
const BAR = /^([^|]*?)\s*\d+(?:\.\d+)?%\|[^|]*\|\s*([\d.,]+)([kKMGT]?i?)B?\s*\/\s*([\d.,]+[kKMGT]?i?B?)\s*\[[^\]]*\]?/;
/** "train: 120it [00:10, 12.0it/s]" */
const COUNTER = /^(.*?)(\d+)\s?(it|B|[kMG]B)\s\[[\d:]+,[^\]]*\]/;
const FACTORS: Readonly<Record<string, number>> = { "": 1, k: 1e3, K: 1e3, M: 1e6, G: 1e9, T: 1e12 };
/** Longer lines are no bars. */
const LONGEST = 2000;

/** The bar that a line shows, or null if it shows none. */
export function barOf(text: string): BarState | null {
  if (text.length > LONGEST || !(text.includes("|") || text.includes("["))) return null;
  const line = plain(lastStates(text)).trim();
  if (line.includes("\n")) return null;
  const bar = BAR.exec(line);
  if (bar) {
    const [, name, done = "", unit = "", total] = bar;
    return { bar: `${name}|${total}`, done: Number(done.replaceAll(",", "")) * (FACTORS[unit[0] ?? ""] ?? 1) };
  }
  const counter = COUNTER.exec(line);
  return counter ? { bar: `${counter[1]}|${counter[3]}`, done: Number(counter[2]) } : null;
}

/**
 * Whether a message is nothing but states of bars. Then its level says nothing: tqdm writes to stderr. A bar that has
 * "error" before its numbers is none of these: an error without an end of line may stand there.
 */
export function isOnlyBars(text: string): boolean {
  if (text.length > LONGEST) return false;
  const states = text
    .split(/[\r\n]/)
    .map((one) => plain(one).trim())
    .filter(Boolean);
  return states.length > 0 && states.every(isOnlyBar);
}

function isOnlyBar(state: string): boolean {
  const [whole, name = ""] = BAR.exec(state) ?? COUNTER.exec(state) ?? [];
  return whole === state && !/error/i.test(name);
}

/**
 * Any text without "error" and without these characters: RE2 knows no "not". No "e" may be followed by "rror": what
 * follows an "e", up to the next one, differs from that in one of its letters, or ends before.
 */
function withoutError(characters: string): string {
  const not = (letters: string): string => `[^eE${letters}${characters}]`;
  const rest = `${not("")}*`;
  let tail = `(?:${not("rR")}${rest})?`;
  for (const letter of ["oO", "rR", "rR"]) tail = `(?:${not(letter)}${rest}|[${letter}]${tail})?`;
  return `${rest}(?:[eE]${tail})*`;
}

/**
 * The same for the server, which leaves such messages out where errors are wanted: an RE2 pattern. Between two states
 * there is the end of a row.
 */
export const ONLY_BARS = ((): string => {
  const colour = String.raw`\x1b\[[0-9;?]*[A-Za-z]`;
  const bar = String.raw`${withoutError(String.raw`|\r\n`)}\d%\|[^|\r\n]*\|\s*[\d.,]+[kKMGT]?i?B?\s*/\s*[\d.,]+[kKMGT]?i?B?\s*\[[^\]\r\n]*\]?`;
  const counter = String.raw`${withoutError(String.raw`\r\n`)}\d\s?(?:it|[kMG]?B)\s\[[\d:]+,[^\]\r\n]*\]`;
  const state = String.raw`(?:\s|${colour})*(?:${bar}|${counter})(?:[ \t]|${colour})*`;
  return String.raw`^${state}(?:[\r\n]${state})*(?:\s|${colour})*$`;
})();

/**
 * For each line, which later one of these shows the same bar further on, so that it need not be shown itself; −1: none.
 *
 * Other lines may stand between the two, but at most `within` places lie from one to the other. For example, of "10/100",
 * "20/100", "saved", "30/100" the first two are overtaken. A bar that begins anew is another one.
 */
export function overtakenBy(lines: readonly (BarState | null)[], within: number): number[] {
  const next = new Map<string, number>();
  const found = lines.map(() => -1);
  for (let n = lines.length - 1; n >= 0; n--) {
    const line = lines[n];
    if (!line) continue;
    const later = next.get(line.bar);
    if (later !== undefined && later - n <= within && lines[later]!.done >= line.done) found[n] = later;
    next.set(line.bar, n);
  }
  return found;
}
