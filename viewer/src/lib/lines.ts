/** Lines of a long text, bounded in number and in length. Pure. */

export interface Line {
  /** From 1. */
  readonly number: number;
  readonly text: string;
}

/** A longer line is cut: browsers are slow to lay out lines of megabytes. */
const LONGEST = 2000;

/** The first `most` lines, or with a search the first that match; how many lines there are, and how many match. */
export function linesOf(text: string, search: string, most: number): { lines: Line[]; count: number; matches: number } {
  const lines: Line[] = [];
  const wanted = search.toLowerCase();
  let [count, matches] = [0, 0];
  for (let start = 0; start < text.length; ) {
    const end = text.indexOf("\n", start);
    const stop = end < 0 ? text.length : end;
    count++;
    if (!wanted || text.slice(start, stop).toLowerCase().includes(wanted)) {
      matches++;
      if (lines.length < most) lines.push({ number: count, text: cut(text, start, stop) });
    }
    start = stop + 1;
  }
  return { lines, count, matches };
}

function cut(text: string, start: number, stop: number): string {
  return stop - start <= LONGEST ? text.slice(start, stop) : `${text.slice(start, start + LONGEST)} …`;
}

/** What a line of a diff is: "added", "removed", "place" (where a change is), "file", or "" for context. */
export function diffKind(line: string): "added" | "removed" | "place" | "file" | "" {
  if (line.startsWith("diff ") || line.startsWith("index ") || line.startsWith("+++ ") || line.startsWith("--- ")) {
    return "file";
  }
  if (line.startsWith("@@")) return "place";
  return line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "";
}
