/** What each tab of a comparison gets. */

import { signal } from "@preact/signals";

import type { Look } from "../../chart/line";
import { adjust } from "../../state/address";
import type { Column, Run } from "./runs";
import { parametersOf, type View } from "./view";

export interface CompareProps {
  readonly project: string;
  readonly view: View;
  /** All runs, in the order of the address. Values of columns are in the same order. */
  readonly runs: readonly Run[];
  readonly columns: ReadonlyMap<string, Column>;
  /** The rows of runs that are neither hidden nor left out by a brush, the base run first. */
  readonly shown: readonly number[];
  /** For each row, whether brushes let it through; hidden ones are not. */
  readonly chosen: readonly boolean[];
  readonly hidden: readonly boolean[];
  /** The row of the run that others are compared with; −1 if there are no runs. */
  readonly base: number;
  /** How lines of runs look, by their ids: the same on all tabs, whichever runs are hidden. */
  readonly looks: ReadonlyMap<string, Pick<Look, "colour" | "dashed">>;
  /** Colours of runs by their ids, as the page is now. */
  readonly colours: ReadonlyMap<string, string>;
}

/** The run that the pointer or the focus is at, in any part of the page. */
export const pointed = signal<string | null>(null);

/** Change what the page shows. `push`: it can be gone back from. */
export function show(change: Partial<View>, options: { push?: boolean } = {}): void {
  adjust(parametersOf(change), options);
}
