/** The row of a table that keys act on. It is kept by its run: runs that come above it move its line. */

import { useRef, useState } from "preact/hooks";

import type { Runs, Spot } from "./sections";

export interface Active {
  /** Its line now; null: there is none, or its row is not here any more. */
  readonly line: number | null;
  /** The line at which it stood last: moves go on from there. */
  readonly last: number | null;
  readonly set: (line: number) => void;
}

export function useActive(runs: Runs): Active {
  const kept = useRef<{ line: number; spot: Spot | null } | null>(null);
  const [, draw] = useState(0);
  const { current } = kept;
  let line = current?.line ?? null;
  if (current) {
    current.spot ??= runs.spotAt(current.line); // its row may not have been here before
    if (current.spot) line = runs.lineOf(current.spot, current.line);
    current.line = line ?? current.line;
  }
  return {
    line,
    last: current?.line ?? null,
    set(line) {
      kept.current = { line, spot: runs.spotAt(line) };
      draw((before) => before + 1);
    },
  };
}
