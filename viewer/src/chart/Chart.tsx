/**
 * One chart: it shows what it is given, and says what a user does: zooms, points at, picks.
 *
 * Its drawer lives as long as the component, or until the axes change; new lines are only drawn anew.
 */

import { type ReadonlySignal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";

import { extentOfX, extentOfY } from "./align";
import css from "./Chart.module.css"; // after the drawer's, which has uPlot's own styles
import { Drawer, type Drawn, type Shown } from "./drawer";
import type { Line } from "./line";
import { type Hover, Readout } from "./Readout";
import { type AxisKind, placeInWords } from "./ticks";

export interface ChartProps extends Shown {
  /** What the chart is called by screen readers. */
  readonly label: string;
  readonly kind: AxisKind;
  readonly logX?: boolean;
  readonly logY?: boolean;
  /** What is drawn, for pictures of the chart. */
  readonly onReady?: (drawn: Drawn | null) => void;
}

export function Chart(props: ChartProps): JSX.Element {
  const { kind, logX = false, logY = false } = props;
  const place = useRef<HTMLDivElement>(null);
  const drawer = useRef<Drawer | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const hover = useSignal<Hover | null>(null);
  const hint = useSignal(false);

  useEffect(() => {
    const made = new Drawer(place.current!, { kind, logX, logY }, () => latest.current, hover, hint);
    drawer.current = made;
    latest.current.onReady?.(made);
    return () => {
      latest.current.onReady?.(null);
      drawer.current = null;
      made.destroy();
    };
  }, [kind, logX, logY, hover, hint]);

  const { lines, range, trimmed, height, mark } = props;
  useEffect(() => drawer.current?.update(), [lines, trimmed, height, mark, range?.[0], range?.[1]]);

  const words = useMemo(() => inWords(lines, kind), [lines, kind]);
  return (
    <div
      class={css["chart"]}
      style={{ height: `${height}px` }}
      role="figure"
      aria-label={`${props.label}. ${words}`}
      tabIndex={0}
      onKeyDown={(event) => drawer.current?.key(event)}
    >
      <div ref={place} class={css["canvas"]} />
      <Readout hover={hover} kind={kind} />
      <Hint hint={hint} />
    </div>
  );
}

/** What somebody is told who turns the wheel over a chart. */
function Hint({ hint }: { hint: ReadonlySignal<boolean> }): JSX.Element | null {
  return hint.value ? <div class={css["hint"]}>Ctrl + wheel zooms</div> : null;
}

/** A chart for who does not see it: how many lines, and where the first ones begin, end, and lie between. */
function inWords(lines: readonly Line[], kind: AxisKind): string {
  const some = lines.slice(0, 5).map((line) => {
    const { x, mean } = line.points;
    const range = extentOfX([line.points], false);
    const values = range && extentOfY([line.points], range, false);
    if (!range || !values) return `${line.name}: no values.`;
    const number = (value: number): string => String(Number(value.toPrecision(4)));
    return (
      `${line.name}: from ${number(mean[0]!)} at ${placeInWords(x[0]!, kind)} to ${number(mean[x.length - 1]!)} ` +
      `at ${placeInWords(x[x.length - 1]!, kind)}, least ${number(values[0])}, greatest ${number(values[1])}.`
    );
  });
  const count = lines.length === 1 ? "1 line." : `${lines.length} lines.`;
  return [count, ...some].join(" ");
}
