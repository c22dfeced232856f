/** Which colour stands for which value of a column. */

import type { JSX } from "preact";

import { short } from "../../../lib/times";
import { dark } from "../../../state/session";
import type { Column } from "../runs";
import { scaleOf } from "../scales";
import { gradient } from "./colours";
import css from "./plots.module.css";

const STEPS = [0, 0.25, 0.5, 0.75, 1];

export function Legend({ column, log }: { column: Column; log: boolean }): JSX.Element {
  const scale = scaleOf(column, log);
  const ends = scale.kind === "text" ? [scale.texts[0], scale.texts.at(-1)] : [short(scale.at(0)), short(scale.at(1))];
  const colours = STEPS.map((step) => gradient(step, dark.value)).join(", ");
  return (
    <span class={css["legend"]}>
      {ends[0]}
      <i style={{ background: `linear-gradient(to right, ${colours})` }} />
      {ends[1]}
    </span>
  );
}
