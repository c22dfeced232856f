/** Time that stands still until a test goes on: timers, frames and dates of a page. */

interface Timer {
  readonly due: number;
  readonly run: () => void;
  /** Milliseconds after which it runs again; null if it runs once. */
  readonly every: number | null;
}

const FRAME = 16;

export class Clock {
  now = Date.UTC(2026, 0, 15, 12);
  #last = 0;
  readonly #timers = new Map<number, Timer>();

  /** What a page has in the place of a browser's timers and dates. */
  globals(): Record<string, unknown> {
    const clock = this;
    const start = this.now;
    const end = (id: number): void => void this.#timers.delete(id);
    class PageDate extends Date {
      constructor(...given: []) {
        super(...((given.length ? given : [clock.now]) as []));
      }
      static override now(): number {
        return clock.now;
      }
    }
    return {
      setTimeout: (run: (...given: unknown[]) => void, pause = 0, ...given: unknown[]) =>
        this.#add(() => run(...given), pause, null),
      setInterval: (run: () => void, pause = 0) => this.#add(run, pause, Math.max(pause, 1)),
      clearTimeout: end,
      clearInterval: end,
      requestAnimationFrame: (draw: (at: number) => void) => this.#add(() => draw(this.now - start), FRAME, null),
      cancelAnimationFrame: end,
      performance: { now: () => this.now - start },
      Date: PageDate,
    };
  }

  /** Go to the timer that is due next, and run it; false if there is none. */
  next(before = Infinity): boolean {
    let first: [number, Timer] | null = null;
    for (const one of this.#timers) if (!first || one[1].due < first[1].due) first = one;
    if (!first || first[1].due > before) return false;
    const [id, timer] = first;
    this.#timers.delete(id);
    this.now = Math.max(this.now, timer.due);
    if (timer.every !== null) this.#timers.set(id, { ...timer, due: this.now + timer.every });
    timer.run();
    return true;
  }

  /** Run something after all that is being done now. */
  later(run: () => void): void {
    this.#add(run, 0, null);
  }

  #add(run: () => void, pause: number, every: number | null): number {
    this.#timers.set(++this.#last, { due: this.now + Math.max(0, pause), run, every });
    return this.#last;
  }
}
