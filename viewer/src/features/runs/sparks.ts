/** The small curves of rows: those of all rows that are seen are asked for at once, and kept while the table is. */

import { bytes } from "../../api/client";
import { curvesOf } from "../../api/columns";
import type { Points } from "../../chart/Spark";
import { readingsOf } from "./columns";

/** Curves of one question, and points of each. */
const MOST_AT_ONCE = 100;
const POINTS = 60;
/** Curves that are kept. */
const MOST = 2000;
const PAUSE = 120;

export class Sparks {
  readonly #kept = new Map<string, Points>();
  readonly #stale = new Set<string>();
  /** Grows with every answer. */
  version = 0;
  #asked: AbortController | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly project: string,
    readonly curve: string,
    readonly inside: boolean,
    readonly changed: () => void,
  ) {}

  get(id: string): Points | undefined {
    return this.#kept.get(id);
  }

  /** These rows are seen: ask for those of their curves that are not here, once scrolling pauses. */
  want(ids: readonly string[]): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#load(ids), PAUSE);
  }

  /** A run's curve has grown. */
  stale(id: string): void {
    this.#stale.add(id);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#asked?.abort();
  }

  async #load(ids: readonly string[]): Promise<void> {
    this.#asked?.abort();
    const asked = (this.#asked = new AbortController());
    const wanted = ids.filter((id) => !this.#kept.has(id) || this.#stale.has(id));
    const readings = readingsOf(this.curve);
    const names = { metric: readings.map(([metric]) => metric), variant: readings.map(([, variant]) => variant) };
    try {
      for (let first = 0; first < wanted.length; first += MOST_AT_ONCE) {
        const some = wanted.slice(first, first + MOST_AT_ONCE);
        const address = `/data/projects/${encodeURIComponent(this.project)}/scalars.bin`;
        const query = { task: some, ...names, points: POINTS, columns: "mean", recursive: this.inside ? 1 : 0 };
        const found = curvesOf(await bytes(address, query, asked.signal));
        const none: Points = { x: [], y: [] };
        for (const id of some) {
          this.#kept.delete(id);
          this.#kept.set(id, none);
          this.#stale.delete(id);
        }
        for (const [metric, variant] of readings.toReversed()) {
          for (const { task, x, columns, ...names } of found) {
            const y = columns["mean"];
            if (task && y && names.metric === metric && names.variant === variant) this.#kept.set(task, { x, y });
          }
        }
        for (const old of [...this.#kept.keys()].slice(0, Math.max(0, this.#kept.size - MOST))) this.#kept.delete(old);
        this.version++;
        this.changed();
      }
    } catch {
      // A row without its curve says enough; the table itself says what goes wrong.
    }
  }
}
