/** What the charts of a page share: the crosshair, and who zoomed. (The zoom is shared by the address: see `view.ts`.) */

import { type Signal, signal } from "@preact/signals";

/** Where the crosshair is: `x`, and the chart that the pointer is in. */
export interface Cursor {
  readonly x: number;
  readonly chart: string;
}

export interface Together {
  readonly cursor: Signal<Cursor | null>;
  /**
   * The chart that somebody zoomed last: its finer buckets are asked for first, and the others follow. Null if all of x is
   * shown.
   */
  zoomed: string | null;
}

export function together(): Together {
  return { cursor: signal(null), zoomed: null };
}
