/** What uPlot is told: axes, scales and the cursor. It draws no lines; `paths.ts` does. Pure. */

import type uPlot from "uplot";

import { type AxisKind, clock, logSplits, logTicks, TIME_STEPS, tick } from "./ticks";

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

/** Pixels left of the lines, the same in all charts whose numbers fit there, so that they lie below each other. */
export const LEFT = 52;
/** Pixels of a character of these numbers at most, and what else lies left of the lines. */
const [CHARACTER, BESIDE] = [6.5, 10];

/** Pixels left of the lines that the numbers of y need: 52 for "0.25", 95 for "1000000000.20". */
export function leftOf(numbers: readonly string[] | null): number {
  const longest = Math.max(0, ...(numbers ?? []).map((number) => number.length));
  return Math.max(LEFT, Math.ceil(longest * CHARACTER + BESIDE));
}

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
      { ...common, ...(axes.logY ? LOG : LINEAR), size: (_, numbers) => leftOf(numbers), gap: 6, space: 28 },
    ],
    series: [{}, { auto: false, paths: () => null, points: { show: false } }],
  };
}

function ofKind({ kind, logX }: Axes): uPlot.Axis {
  if (kind === "timestamp") return { values: (_, splits, __, ___, step) => times(splits, step) };
  if (logX) return LOG;
  if (kind === "relative") {
    return { incrs: [...TIME_STEPS], values: (_, splits, __, ___, step) => splits.map((value) => clock(value, step)) };
  }
  return kind === "iter" ? { ...LINEAR, incrs: WHOLE } : LINEAR;
}

/** Steps between numbers, as large as numbers get: uPlot's own end at 5e31. */
const STEPS = Array.from({ length: 340 }, (_, number) =>
  [1, 2, 2.5, 5].map((digit) => Number(`${digit}e${number - 32}`)),
).flat();

const LINEAR: uPlot.Axis = {
  incrs: STEPS,
  values: (_, splits, __, ___, step) => splits.map((value) => tick(value, step)),
};

const LOG: uPlot.Axis = {
  incrs: STEPS,
  splits: (plot, axis, least, greatest) => {
    const { width, height } = plot.bbox;
    return logSplits(least, greatest, Math.floor((axis === 0 ? width / 60 : height / 28) / devicePixelRatio));
  },
  filter: (_, splits) => splits,
  values: (_, splits) => logTicks(splits),
};

/** Iterations are whole: 1, 2, 5, 10, 20 and so on. */
const WHOLE = Array.from({ length: 18 }, (_, power) => [1, 2, 5].map((digit) => digit * 10 ** power)).flat();

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
