/** What the charts of a page share: the crosshair. (The zoom is shared by the address: see `view.ts`.) */

import { signal, type Signal } from "@preact/signals";

/** Where the crosshair is: `x`, and the chart that the pointer is in. */
export interface Cursor {
  readonly x: number;
  readonly chart: string;
}

export interface Together {
  readonly cursor: Signal<Cursor | null>;
}

export function together(): Together {
  return { cursor: signal(null) };
}
