/** What keys do in the table of runs. */

import { useKeys } from "../../hooks/keys";

/** What keys may do with the lines. */
export interface Moves {
  /** The active line; null: there is none. */
  readonly active: number | null;
  /** The line at which it stood last. */
  readonly last: number | null;
  readonly lines: number;
  readonly move: (line: number) => void;
  readonly open: (line: number | null) => void;
  readonly toggle: (line: number, to?: boolean) => void;
  readonly select: (line: number, withShift: boolean) => Promise<void>;
  readonly selectNone: () => void;
}

/** Keys that work wherever the focus is. */
export function useGridKeys({ active, last, move, open, select, selectNone }: Moves): void {
  useKeys("Runs", [
    { keys: ["j", "ArrowDown"], shown: "j ↓", does: "Next run", run: () => move((last ?? -1) + 1) },
    { keys: ["k", "ArrowUp"], shown: "k ↑", does: "Run before", run: () => move((last ?? 1) - 1) },
    { keys: ["o"], shown: "o Enter", does: "Open the run, or a group", run: () => open(active) },
    { keys: ["x"], does: "Select the run", run: () => active !== null && void select(active, false) },
    {
      keys: ["X"],
      does: "Select all from the last selected one",
      run: () => active !== null && void select(active, true),
    },
    { keys: ["Escape"], does: "Select none", run: selectNone },
  ]);
}

/** What a key does while the rows have the focus, of which so many fit into the window. */
export function actionOf({ key, shiftKey }: KeyboardEvent, fit: number, moves: Moves): (() => void) | undefined {
  const { active, last, lines, move, open, toggle, select } = moves;
  const actions: Readonly<Record<string, () => void>> = {
    Enter: () => open(active),
    ArrowRight: () => active !== null && toggle(active, true),
    ArrowLeft: () => active !== null && toggle(active, false),
    PageDown: () => move((last ?? 0) + fit),
    PageUp: () => move((last ?? 0) - fit),
    Home: () => move(0),
    End: () => move(lines - 1),
    " ": () => active !== null && void select(active, shiftKey),
  };
  return actions[key];
}
