/** What uPlot is told: axes, scales and the cursor. It draws no lines; `paths.ts` does. Pure. */

import type uPlot from "uplot";

import { clock, tick, TIME_STEPS, type AxisKind } from "./ticks";

/** How an axis is read. */
export interface Axes {
  readonly kind: AxisKind;
  readonly logX: boolean;
  readonly logY: boolean;
}

export interface Paint {
  /** Lines of the grid. */
  readonly grid: string;
  /** Numbers beside the axes. */
  readonly text: string;
  readonly dark: boolean;
}

const FONT = "11px system-ui, sans-serif";

/** Pixels left of the lines, the same in all charts, so that they lie below each other. */
export const LEFT = 52;

export function optionsOf(size: { width: number; height: number }, axes: Axes, paint: () => Paint): uPlot.Options {
  const common: uPlot.Axis = {
    stroke: () => paint().text,
    font: FONT,
    grid: { stroke: () => paint().grid, width: 1 },
    ticks: { show: false },
  };
  const kept = (_: uPlot, min: number, max: number): uPlot.Range.MinMax => [min, max];
  return {
    ...size,
    ms: 1,
    padding: [8, 10, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: true, y: false, setScale: false, dist: 4 },
      bind: { dblclick: () => () => null },
    },
    select: { show: true, left: 0, top: 0, width: 0, height: 0 },
    scales: {
      x: { time: axes.kind === "timestamp", range: kept, distr: axes.logX ? 3 : 1 },
      y: { range: kept, distr: axes.logY ? 3 : 1 },
    },
    axes: [
      { ...common, ...ofKind(axes), size: axes.kind === "timestamp" ? 38 : 26, gap: 4, space: 60 },
      { ...common, values: (_, splits, __, ___, step) => numbers(splits, step, axes.logY), size: LEFT, gap: 6, space: 28 },
    ],
    series: [{}, { auto: false, paths: () => null, points: { show: false } }],
  };
}

function ofKind({ kind, logX }: Axes): uPlot.Axis {
  if (kind === "timestamp") return { values: (_, splits, __, ___, step) => times(splits, step) };
  if (kind === "relative" && !logX) {
    return { incrs: [...TIME_STEPS], values: (_, splits, __, ___, step) => splits.map((value) => clock(value, step)) };
  }
  const whole = kind === "iter" ? { incrs: WHOLE } : {};
  return { ...(!logX && whole), values: (_, splits, __, ___, step) => numbers(splits, step, logX) };
}

/** Iterations are whole: 1, 2, 5, 10, 20 and so on. */
const WHOLE = Array.from({ length: 18 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

/** On log scales, uPlot leaves out numbers that would lie too near to others, as null, and begins where the scale does. */
function numbers(splits: readonly (number | null)[], step: number, log: boolean): string[] {
  return splits.map((value) => {
    if (value === null) return "";
    if (!log) return tick(value, step);
    const digit = value / 10 ** Math.floor(Math.log10(value) + 1e-9);
    return Math.abs(digit - Math.round(digit)) < 1e-6 ? tick(value, value) : "";
  });
}

/** The time of day, and below it the day where it is another one than before. Steps of days have days alone. */
function times(splits: readonly number[], step: number): string[] {
  const [clock, day] = step < 1000 ? [MILLISECONDS, DAY] : step < 60_000 ? [SECONDS, DAY] : [MINUTES, DAY];
  let before = "";
  return splits.map((value) => {
    const date = day.format(value);
    if (step >= 86_400_000) return date;
    const text = date === before ? clock.format(value) : `${clock.format(value)}\n${date}`;
    before = date;
    return text;
  });
}

const clockWith = (options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", ...options });
const MINUTES = clockWith({});
const SECONDS = clockWith({ second: "2-digit" });
const MILLISECONDS = clockWith({ second: "2-digit", fractionalSecondDigits: 3 });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
