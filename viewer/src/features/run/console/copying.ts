/** Copies lines of a console whole, also those that are shown shortened. */

import { counted } from "../../../lib/times";
import { copy } from "../../../ui/Copy";
import { plain } from "./ansi";
import { linesAt, linesFrom, MOST_SHOWN } from "./ask";
import type { Log } from "./log";

/** The most lines that are copied at once. */
const MOST_COPIED = 10_000;
/** About so many characters are copied at most. */
const MOST_CHARACTERS = 20_000_000;

/** Copy the lines from `first` to `last`, or those of them that are shown, and say how many. */
export async function copyLines(task: string, log: Log, first: number, last: number): Promise<void> {
  const { signal } = new AbortController();
  const shown = log.filter?.numbers.slice(log.filter.placeAfter(first - 1), log.filter.placeAfter(last));
  const all = shown ? shown.length : last - first + 1;
  const count = Math.min(all, MOST_COPIED);
  const longest = Math.min(MOST_SHOWN, Math.floor(MOST_CHARACTERS / Math.max(1, count)));
  const lines = shown
    ? await linesAt(task, shown.slice(0, count), signal, longest)
    : await linesFrom(task, first, count, signal, longest);
  const text = lines.map((line) => `${plain(line.msg).replace(/\n+$/, "")}\n`).join("");
  const copied = count < all ? `${counted(lines.length)} of ${counted(all)}` : counted(lines.length);
  const cut = lines.some((line) => line.length > line.msg.length)
    ? `; of long ones the first ${counted(longest)} characters`
    : "";
  await copy(text, `Copied ${copied} ${all === 1 ? "line" : "lines"}${cut}`);
}
