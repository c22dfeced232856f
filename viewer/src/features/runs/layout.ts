/**
 * Which line of the table shows what: sections one below the other, each with a heading if it is a group, and rows if it
 * is open. Pure.
 *
 * For example, a closed group of 5 rows, and an open one of 2: line 0 is the first heading, line 1 the second, and lines
 * 2 and 3 are the rows of the second.
 */

export interface Part {
  readonly hasHead: boolean;
  readonly open: boolean;
  readonly rows: number;
}

/** A line: the number of its section, and of the row in it; −1 for the heading. */
export interface Line {
  readonly part: number;
  readonly row: number;
}

export class Layout {
  /** The first line of each section, and behind the last one the number of lines. */
  readonly #starts: number[];
  readonly #parts: readonly Part[];

  constructor(parts: readonly Part[]) {
    this.#parts = parts;
    this.#starts = [0];
    for (const part of parts) this.#starts.push(this.lines + Number(part.hasHead) + (part.open ? part.rows : 0));
  }

  get lines(): number {
    return this.#starts.at(-1) ?? 0;
  }

  /** What a line shows; null if there is no such line. */
  at(line: number): Line | null {
    if (line < 0 || line >= this.lines) return null;
    let [low, high] = [0, this.#parts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.#starts[middle] ?? 0) <= line) low = middle;
      else high = middle - 1;
    }
    return { part: low, row: line - (this.#starts[low] ?? 0) - Number(this.#parts[low]?.hasHead ?? false) };
  }

  /** The line of a row, or of a heading (−1). */
  lineOf({ part, row }: Line): number {
    return (this.#starts[part] ?? 0) + row + Number(this.#parts[part]?.hasHead ?? false);
  }

  /** Which rows of which sections are among the lines from `first` up to but not including `end`. */
  within(first: number, end: number): { readonly part: number; readonly first: number; readonly end: number }[] {
    const found = [];
    const from = this.at(Math.max(first, 0));
    for (let part = from?.part ?? this.#parts.length; part < this.#parts.length; part++) {
      const start = this.lineOf({ part, row: 0 });
      if (start >= end) break;
      const [one, other] = [Math.max(first - start, 0), Math.min(end, this.#starts[part + 1] ?? 0) - start];
      if (other > one) found.push({ part, first: one, end: other });
    }
    return found;
  }
}
