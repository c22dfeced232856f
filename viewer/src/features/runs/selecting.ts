/** Selects runs of the table: one, all from the last one to it, or all that match. */

import { useRef } from "preact/hooks";

import { attempt } from "../../state/toasts";
import type { Runs, Spot } from "./sections";

export interface Selecting {
  /** Select or unselect the run of a line; with Shift, all from the last one to it. */
  readonly select: (line: number, withShift: boolean) => Promise<void>;
  /** Select all, or none if any is selected. */
  readonly selectAll: () => Promise<void>;
}

export function useSelecting(
  runs: Runs,
  selected: ReadonlySet<string>,
  setSelected: (ids: ReadonlySet<string>) => void,
): Selecting {
  /** The row that was selected last: its line then, and what it shows. */
  const anchor = useRef<{ line: number; spot: Spot | null }>({ line: 0, spot: null });
  const latest = useRef(selected);
  latest.current = selected;

  async function select(line: number, withShift: boolean): Promise<void> {
    const row = runs.row(line);
    if (!row) return;
    const next = new Set(latest.current);
    const isOn = !next.has(row.id);
    const { line: before, spot } = anchor.current;
    const from = withShift ? ((spot && runs.lineOf(spot, before)) ?? before) : line;
    const [first, end] = [Math.min(from, line), Math.max(from, line) + 1];
    anchor.current = { line, spot: runs.spotAt(line) };
    await attempt(async () => {
      const ids = end - first > 1 ? await runs.idsWithin(first, end) : [row.id];
      for (const id of ids) isOn ? next.add(id) : next.delete(id);
    });
    setSelected(next); // also after an error, so that the box shows what is selected
  }

  async function selectAll(): Promise<void> {
    let ids: readonly string[] = [];
    if (!selected.size) await attempt(async () => void (ids = await runs.allIds()));
    setSelected(new Set(ids));
  }

  return { select, selectAll };
}
