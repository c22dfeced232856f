/** Values that a run reports once, without an iteration. */

import type { JSX } from "preact";

import type { SingleValue } from "../../api/endpoints";
import { valueText } from "../../lib/times";
import css from "./SingleValues.module.css";

export function SingleValues({ values }: { values: readonly SingleValue[] }): JSX.Element | null {
  if (!values.length) return null;
  return (
    <dl class={css["values"]} aria-label="Single values">
      {values.map(({ metric, variant, value }) => (
        <div key={`${metric}/${variant}`}>
          <dt title={`${metric}/${variant}`}>{variant}</dt>
          <dd>{valueText(value)}</dd>
        </div>
      ))}
    </dl>
  );
}
