/** A search in a whole log: the server is asked part by part, and the numbers of the hits are gathered. */

import { type Hits, hits, type Wanted } from "./ask";

/** More hits are not gathered: 2 million of them are 16 MB. */
const MOST = 2_000_000;

export class Search {
  /** The numbers of the hits so far, ascending. */
  readonly numbers: number[] = [];
  /** Lines before this number were searched. */
  end = 0;
  /** Whether the whole log was searched, as far as it was there. */
  done = false;
  error: Error | null = null;
  /** Whether there are more hits than are gathered. */
  full = false;
  #last: string | null = null;
  #stop = new AbortController();

  constructor(
    readonly task: string,
    readonly wanted: Wanted,
    private readonly changed: () => void,
    private readonly ask: typeof hits = hits,
  ) {
    void this.#run();
  }

  stop(): void {
    this.#stop.abort();
  }

  /** Lines came: go on behind the last one. */
  more(): void {
    if (!this.done || this.full) return;
    this.done = false;
    void this.#run();
  }

  /** The place among the hits of the first one behind a line. */
  placeAfter(line: number): number {
    let [low, high] = [0, this.numbers.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.numbers[middle]! <= line) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  has(line: number): boolean {
    return this.numbers[this.placeAfter(line) - 1] === line;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    try {
      while (!this.done) {
        await seen(signal);
        const found: Hits = await this.ask(this.task, this.wanted, this.#last, signal);
        if (signal.aborted) return;
        for (const line of found.lines) this.numbers.push(line);
        this.end = found.end;
        this.#last = found.last ?? this.#last;
        this.full = this.numbers.length >= MOST;
        this.done = found.ended || this.full;
        this.error = null;
        this.changed();
      }
    } catch (error) {
      if (signal.aborted) return;
      this.error = error instanceof Error ? error : new Error(String(error));
      this.done = true;
      this.changed();
    }
  }
}

/** Wait while the page is hidden: it asks for nothing then. */
function seen(signal: AbortSignal): Promise<void> {
  if (typeof document === "undefined" || !document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    function look(): void {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      signal.removeEventListener("abort", look);
      resolve();
    }
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look);
  });
}
