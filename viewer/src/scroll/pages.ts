/**
 * The rows of a long list, asked for in pages when they are to be seen. Those that were seen longest ago are forgotten.
 *
 * Questions for pages that are out of sight again are given up, so a fast scroll asks only for where it ends.
 */

interface Options<T> {
  /** Ask for rows: `count` of them from `first`; fewer at the end. */
  readonly ask: (first: number, count: number, signal: AbortSignal) => Promise<readonly T[]>;
  /** Called when rows came, and with an error when they did not. */
  readonly changed: (error?: Error) => void;
  /** Rows of a page. */
  readonly size?: number;
  /** Pages that are kept. */
  readonly most?: number;
}

export class Pages<T> {
  readonly #ask: Options<T>["ask"];
  readonly #changed: Options<T>["changed"];
  readonly #size: number;
  readonly #most: number;
  /** By number; the one that was wanted last is the last one. Stale pages are shown until new ones come. */
  readonly #kept = new Map<number, { rows: T[]; fresh: boolean }>();
  readonly #asked = new Map<number, AbortController>();

  constructor({ ask, changed, size = 200, most = 60 }: Options<T>) {
    this.#ask = ask;
    this.#changed = changed;
    this.#size = size;
    this.#most = most;
  }

  /** A row, if it is here. */
  get(row: number): T | undefined {
    return this.#kept.get(Math.floor(row / this.#size))?.rows[row % this.#size];
  }

  /** The number of the first row that is here and fits; of those that may have changed meanwhile only if no other fits. */
  find(fits: (row: T) => boolean): number | null {
    for (const wanted of [true, false]) {
      for (const [number, { rows, fresh }] of this.#kept) {
        const place = fresh === wanted ? rows.findIndex(fits) : -1;
        if (place >= 0) return number * this.#size + place;
      }
    }
    return null;
  }

  /** Ask for the rows from `first` up to but not including `end`, and for no others. */
  want(first: number, end: number): void {
    const numbers = new Set<number>();
    for (let page = Math.floor(Math.max(first, 0) / this.#size); page * this.#size < end; page++) numbers.add(page);
    this.#wantPages(numbers);
  }

  /** The same for rows that are no neighbours. */
  wantEach(rows: Iterable<number>): void {
    const numbers = new Set<number>();
    for (const row of rows) numbers.add(Math.floor(row / this.#size));
    this.#wantPages(numbers);
  }

  #wantPages(numbers: ReadonlySet<number>): void {
    for (const [number, asked] of this.#asked) if (!numbers.has(number)) this.#giveUp(number, asked);
    for (const number of numbers) {
      const kept = this.#kept.get(number);
      if (kept) {
        this.#kept.delete(number);
        this.#kept.set(number, kept);
      }
      if (!kept?.fresh && !this.#asked.has(number)) void this.#load(number);
    }
  }

  /** Rows from `first` on may have changed: they are asked for anew when they are wanted, and shown until then. */
  stale(first = 0): void {
    const from = Math.floor(first / this.#size);
    for (const [number, asked] of this.#asked) if (number >= from) this.#giveUp(number, asked);
    for (const [number, page] of this.#kept) if (number >= from) page.fresh = false;
  }

  /** All rows have other numbers, `by` more than before: they are shown there, and asked for anew when wanted. */
  move(by: number): void {
    for (const [number, asked] of this.#asked) this.#giveUp(number, asked);
    const before = [...this.#kept];
    this.#kept.clear();
    for (const [number, { rows }] of before) {
      rows.forEach((row, n) => {
        const at = number * this.#size + n + by;
        if (at < 0) return;
        const page = Math.floor(at / this.#size);
        if (!this.#kept.has(page)) this.#kept.set(page, { rows: [], fresh: false });
        this.#kept.get(page)!.rows[at % this.#size] = row;
      });
    }
  }

  /** Forget everything, and ask for nothing any more. */
  clear(): void {
    for (const [number, asked] of this.#asked) this.#giveUp(number, asked);
    this.#kept.clear();
  }

  async #load(number: number): Promise<void> {
    const asked = new AbortController();
    this.#asked.set(number, asked);
    try {
      const rows = await this.#ask(number * this.#size, this.#size, asked.signal);
      if (asked.signal.aborted) return;
      this.#asked.delete(number);
      this.#kept.delete(number);
      this.#kept.set(number, { rows: [...rows], fresh: true });
      for (const old of [...this.#kept.keys()].slice(0, Math.max(0, this.#kept.size - this.#most)))
        this.#kept.delete(old);
      this.#changed();
    } catch (error) {
      if (asked.signal.aborted) return;
      this.#asked.delete(number);
      this.#changed(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #giveUp(number: number, asked: AbortController): void {
    this.#asked.delete(number);
    asked.abort();
  }
}
