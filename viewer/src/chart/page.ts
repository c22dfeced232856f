/** What the charts of a page have in common: where curves come from, the crosshair, and what changes live. */

import { follow } from "../api/live";
import { Loader } from "./loader";
import type { ChartSource } from "./source";
import { type Together, together } from "./sync";

export interface Page {
  readonly source: ChartSource;
  readonly loader: Loader;
  readonly together: Together;
  readonly changes: Changes;
}

export function pageOf(source: ChartSource): Page {
  return { source, loader: new Loader(source), together: together(), changes: new Changes() };
}

/** Charts that are on the screen are told to ask again, at most so often (milliseconds). */
const PAUSE = 1000;

/** Tells the charts on the screen when their curves have changed. */
export class Changes {
  private readonly listeners = new Map<() => void, string>();
  /** Metrics that changed since charts were told; null: any may have. */
  private changed: Set<string> | null = new Set();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private told = 0;

  /** Call `again` when curves of the metric have changed, until the returned function is called. */
  listen(metric: string, again: () => void): () => void {
    this.listeners.set(again, metric);
    return () => this.listeners.delete(again);
  }

  /** Follow the tasks until the returned function is called. */
  follow(tasks: readonly string[]): () => void {
    const end = follow({ tasks }, (change) => {
      if (change.event === "scalars" && change.series) for (const [metric] of change.series) this.changed?.add(metric);
      else if (change.event === "scalars" || change.event === "reset") this.changed = null;
      else return;
      this.timer ??= setTimeout(() => this.tell(), Math.max(0, this.told + PAUSE - Date.now()));
    });
    return () => {
      end();
      clearTimeout(this.timer);
      this.timer = undefined;
    };
  }

  private tell(): void {
    const changed = this.changed;
    this.changed = new Set();
    this.timer = undefined;
    this.told = Date.now();
    for (const [again, metric] of [...this.listeners]) if (!changed || changed.has(metric)) again();
  }
}
