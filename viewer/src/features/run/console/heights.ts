/**
 * Rows of a list in which some lines have no row, and some have several: which row a line is, and which line a row is. Pure.
 *
 * A line has one row unless `put` says otherwise. For example, if line 10 has no row and line 20 has three, line 11 is row
 * 10, and rows 19 to 21 are line 20. Each question takes some twenty steps for ten million lines.
 */

/** Lines of a page. The rows of a page are summed up. */
const PAGE = 256;

export class Heights {
  /** The heights of the lines of a page, if one of them is not 1. */
  readonly #pages = new Map<number, Uint32Array>();
  /** A Fenwick tree: how many rows the pages have beyond one a line. Its length is 1 + a power of two. */
  #sums = new Int32Array(2);
  #beyond = 0;

  /** How many rows so many lines have, if no later line was put. */
  rows(lines: number): number {
    return lines + this.#beyond;
  }

  heightOf(line: number): number {
    return this.#pages.get(Math.floor(line / PAGE))?.[line % PAGE] ?? 1;
  }

  /** A line has so many rows. */
  put(line: number, height: number): void {
    const by = height - this.heightOf(line);
    if (!by) return;
    const page = Math.floor(line / PAGE);
    if (page + 1 >= this.#sums.length) this.#grow(page + 1);
    let heights = this.#pages.get(page);
    if (!heights) this.#pages.set(page, (heights = new Uint32Array(PAGE).fill(1)));
    heights[line % PAGE] = height;
    this.#beyond += by;
    for (let n = page + 1; n < this.#sums.length; n += n & -n) this.#sums[n]! += by;
  }

  clear(): void {
    this.#pages.clear();
    this.#sums = new Int32Array(2);
    this.#beyond = 0;
  }

  /** The first row of a line; of a line without a row, the row of the next one that has one. */
  rowOf(line: number): number {
    const page = Math.floor(line / PAGE);
    let row = page * PAGE;
    for (let n = Math.min(page, this.#sums.length - 1); n > 0; n -= n & -n) row += this.#sums[n]!;
    const heights = this.#pages.get(page);
    if (!heights) return row + (line % PAGE);
    for (let n = 0; n < line % PAGE; n++) row += heights[n]!;
    return row;
  }

  /** The line of a row, and which one of the line's rows it is, from 0. */
  at(row: number): { line: number; part: number } {
    let page = 0;
    let left = row;
    for (let step = this.#sums.length - 1; step > 0; step >>= 1) {
      const inside = page + step < this.#sums.length ? step * PAGE + this.#sums[page + step]! : Infinity;
      if (inside > left) continue;
      left -= inside;
      page += step;
    }
    const heights = this.#pages.get(page);
    if (!heights) return { line: page * PAGE + left, part: 0 };
    let n = 0;
    while (left >= heights[n]!) left -= heights[n++]!;
    return { line: page * PAGE + n, part: left };
  }

  #grow(pages: number): void {
    let size = this.#sums.length - 1;
    while (size < pages) size *= 2;
    this.#sums = new Int32Array(size + 1);
    for (const [page, heights] of this.#pages) {
      const beyond = heights.reduce((sum, one) => sum + one, 0) - PAGE;
      for (let n = page + 1; n <= size; n += n & -n) this.#sums[n]! += beyond;
    }
  }
}
