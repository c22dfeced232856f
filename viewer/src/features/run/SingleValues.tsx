/** Values that a run reports once, without an iteration. */

import type { JSX } from "preact";

import { short } from "../../lib/times";
import css from "./SingleValues.module.css";

export interface SingleValue {
  readonly metric: string;
  readonly variant: string;
  readonly value: number | string;
}

export function SingleValues({ values }: { values: readonly SingleValue[] }): JSX.Element | null {
  if (!values.length) return null;
  return (
    <dl class={css["values"]} aria-label="Single values">
      {values.map(({ metric, variant, value }) => (
        <div key={`${metric}/${variant}`}>
          <dt title={`${metric}/${variant}`}>{variant}</dt>
          <dd>{typeof value === "number" ? short(value) : value}</dd>
        </div>
      ))}
    </dl>
  );
}
