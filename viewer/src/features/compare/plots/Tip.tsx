/** The name of a run and some of its values, beside the pointer or the place of the run. */

import type { JSX } from "preact";

import { short } from "../../../lib/times";
import type { Column, Value } from "../runs";
import css from "./plots.module.css";

interface Props {
  name: string;
  row: number;
  columns: readonly Column[];
  /** Where in the plot, in pixels, and how wide that is. */
  at: readonly [number, number];
  width: number;
}

export function Tip({ name, row, columns, at: [x, y], width }: Props): JSX.Element {
  const side = x > width / 2 ? { right: `${width - x + 14}px` } : { left: `${x + 14}px` };
  return (
    <div class={css["tip"]} style={{ top: `${Math.max(4, y - 20)}px`, ...side }} role="status">
      <b>{name}</b>
      <dl>
        {[...new Set(columns)].map((column) => (
          <>
            <dt>{column.label}</dt>
            <dd>{written(column.values[row]!)}</dd>
          </>
        ))}
      </dl>
    </div>
  );
}

export function written(value: Value): string {
  return value === null ? "–" : typeof value === "number" ? short(value) : value;
}
