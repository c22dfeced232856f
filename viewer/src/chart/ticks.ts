/** Numbers beside axes and in tables, as text. Pure. */

import { counted, duration, short } from "../lib/times";

/** What x is: iterations, milliseconds since a start, a time (milliseconds since 1970), or any number. */
export type AxisKind = "iter" | "relative" | "timestamp" | "value";

/** Numbers at an axis: `step` lies between two of them. 300000 by 100000 → "300k", 0.25 by 0.05 → "0.25". */
export function tick(value: number, step: number): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-4 || size >= 1e13) return value.toExponential(digitsOf(size, step)).replace("e+", "e");
  for (const [unit, name] of UNITS) {
    if (size >= unit && step >= unit / 10) return `${fixed(value / unit, step / unit)}${name}`;
  }
  return Number.isInteger(value) && Number.isInteger(step) ? counted(value) : fixed(value, step);
}

const UNITS = [
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
] as const;

/** As many digits behind the point as the step has: 0.25 has two. */
function fixed(value: number, step: number): string {
  for (let digits = 0; digits < 12; digits++) {
    const size = step * 10 ** digits;
    if (size >= 1 - 1e-9 && Math.abs(size - Math.round(size)) < 1e-6) return value.toFixed(digits);
  }
  return value.toPrecision(4);
}

/** Digits behind the first one that tell a number from the next one at the axis. */
function digitsOf(size: number, step: number): number {
  return Math.min(6, Math.max(0, Math.floor(Math.log10(size)) - Math.floor(Math.log10(step) + 1e-9)));
}

/**
 * About `most` numbers for a log axis: 1, 2, 5, 10 and so on, or powers of ten alone, or in even steps where the axis is
 * narrow. uPlot's own never end if the axis begins at 0.0098: it rounds a step of 0.001 to 0.
 */
export function logSplits(least: number, greatest: number, most: number): number[] {
  const [from, to] = [Math.floor(Math.log10(least)), Math.ceil(Math.log10(greatest))];
  const powers = Array.from({ length: to - from + 1 }, (_, number) => from + number);
  const within = (splits: number[]): number[] => splits.filter((split) => split >= least && split <= greatest);
  const some = within(powers.flatMap((power) => [1, 2, 5].map((digit) => Number(`${digit}e${power}`))));
  if (some.length < 3) return within(evenSplits(least, greatest, most));
  if (some.length <= most) return some;
  const apart = Math.ceil(powers.length / Math.max(2, most));
  return within(powers.filter((power) => power % apart === 0).map((power) => Number(`1e${power}`)));
}

function evenSplits(least: number, greatest: number, most: number): number[] {
  const finest = (greatest - least) / Math.max(2, most);
  const power = 10 ** Math.floor(Math.log10(finest));
  const step = power * [1, 2, 5, 10].find((digit) => digit * power >= finest * (1 - 1e-9))!;
  const first = Math.ceil(least / step);
  const count = Math.max(0, Math.floor(greatest / step) - first + 1);
  return Array.from({ length: count }, (_, number) => Number(((first + number) * step).toPrecision(12)));
}

/** The numbers of `logSplits` as text: those in even steps with as many digits as tell them apart. */
export function logTicks(splits: readonly number[]): string[] {
  const [one = 0, two = 0, three = 0] = splits;
  const even = splits.length > 2 && Math.abs(two - one - (three - two)) < (two - one) * 1e-3;
  return splits.map((value) => tick(value, even ? Number((two - one).toPrecision(6)) : value));
}

/** "1:05:00" for milliseconds since a start; with parts of seconds if the step is shorter than one. */
export function clock(milliseconds: number, step: number): string {
  const sign = milliseconds < 0 ? "−" : "";
  const total = Math.abs(milliseconds);
  if (step < 1000) return `${sign}${fixed(total / 1000, step / 1000)} s`;
  const seconds = Math.round(total / 1000);
  const [days, hours, minutes] = [
    Math.floor(seconds / 86400),
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
  ];
  const two = (part: number): string => String(part).padStart(2, "0");
  const rest = step >= 60_000 ? "" : `:${two(seconds % 60)}`;
  if (days && step >= 86_400_000) return `${sign}${days} d`;
  if (days) return `${sign}${days} d ${two(hours)}:${two(minutes)}${rest}`;
  return `${sign}${hours}:${two(minutes)}${rest}`;
}

/** Steps between marks of an axis of milliseconds. */
export const TIME_STEPS: readonly number[] = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500],
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * 1000),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60_000),
  ...[1, 2, 3, 4, 6, 12].map((hours) => hours * 3_600_000),
  ...[1, 2, 5, 7, 14, 28, 50, 100, 200, 500].map((days) => days * 86_400_000),
];

/** A place on the x axis in words: "iteration 1,200", "12 min 3 s", a date and time, or a number. */
export function placeInWords(x: number, kind: AxisKind): string {
  switch (kind) {
    case "iter":
      return `iteration ${counted(Math.round(x))}`;
    case "relative":
      return Math.abs(x) < 10_000 ? `${short(x / 1000)} s` : duration(x);
    case "timestamp":
      return new Date(x).toLocaleString();
    case "value":
      return short(x);
  }
}
