/**
 * Rows of a list from which some lines are left out: which row a line is, and which line a row is. Pure.
 *
 * Lines that are left out are kept as runs, in order, with how many there are before each. For example, without the
 * lines 10 to 12 and 20, row 10 is line 13, and line 21 is row 17.
 */

export class Folds {
  #runs: { first: number; end: number; before: number }[] = [];

  /** How many lines are left out. */
  get hidden(): number {
    const last = this.#runs.at(-1);
    return last ? last.before + last.end - last.first : 0;
  }

  /** Say of the lines `first` ≤ n < `first + hidden.length` whether each is left out. Returns whether that is new. */
  set(first: number, hidden: readonly boolean[]): boolean {
    const end = first + hidden.length;
    const runs: [number, number][] = [];
    for (const run of this.#runs) {
      if (run.first < first) runs.push([run.first, Math.min(run.end, first)]);
    }
    hidden.forEach((is, n) => {
      if (!is) return;
      const last = runs.at(-1);
      if (last && last[1] === first + n) last[1]++;
      else runs.push([first + n, first + n + 1]);
    });
    for (const run of this.#runs) {
      if (run.end <= end) continue;
      const start = Math.max(run.first, end);
      const last = runs.at(-1);
      if (last && last[1] === start) last[1] = run.end;
      else runs.push([start, run.end]);
    }
    const same = runs.length === this.#runs.length && runs.every(([a, b], n) => a === this.#runs[n]!.first && b === this.#runs[n]!.end);
    if (same) return false;
    let before = 0;
    this.#runs = runs.map(([a, b]) => {
      const run = { first: a, end: b, before };
      before += b - a;
      return run;
    });
    return true;
  }

  clear(): void {
    this.#runs = [];
  }

  /** The row of a line; of a line that is left out, the row of the next one that is not. */
  rowOf(line: number): number {
    const run = this.#runs[this.#last((one) => one.first <= line)];
    return run ? Math.max(line, run.end) - run.before - (run.end - run.first) : line;
  }

  /** The line of a row. */
  lineOf(row: number): number {
    const run = this.#runs[this.#last((one) => one.first - one.before <= row)];
    return run ? row + run.before + run.end - run.first : row;
  }

  /** How many lines are left out just before a line. */
  foldedBefore(line: number): number {
    const run = this.#runs[this.#last((one) => one.end <= line)];
    return run && run.end === line ? run.end - run.first : 0;
  }

  /** The last run for which `is` holds; it holds for the first ones, and then no more. */
  #last(is: (run: { first: number; end: number; before: number }) => boolean): number {
    let [low, high] = [0, this.#runs.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (is(this.#runs[middle]!)) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }
}
