/**
 * Arithmetic with curves: cutting, joining, extremes. Pure.
 *
 * Every line keeps its own x. Nothing is joined into one table, so that a chart of 100 runs needs no gaps, and numbers
 * stay in the arrays that the server's answer came in.
 */

import type { Curve } from "../api/columns";

export type Numbers = Float32Array | Float64Array;

/** From and to, both included. */
export type Range = readonly [from: number, to: number];

/**
 * Buckets of a curve, ascending by `x`, all arrays of one length. A bucket without finite values has NaN.
 *
 * A line without a band has the same array as `mean`, `min` and `max`. `count` is null if it is not known.
 */
export interface Points {
  readonly x: Numbers;
  readonly mean: Numbers;
  readonly min: Numbers;
  readonly max: Numbers;
  readonly count: Numbers | null;
  /** How many values of each bucket are NaN or infinite; null if that is not known. */
  readonly wrong: Numbers | null;
  /** Of a curve against another one: what was x before. */
  readonly origin?: Numbers;
}

/** The points of an answer. Without buckets, its column is "value". */
export function pointsOf(curve: Curve): Points {
  const { columns } = curve;
  const mean = columns["mean"] ?? columns["value"] ?? new Float32Array(curve.rows).fill(NaN);
  return {
    x: curve.x,
    mean,
    min: columns["min"] ?? mean,
    max: columns["max"] ?? mean,
    count: columns["count"] ?? null,
    wrong: columns["not_finite"] ?? null,
  };
}

export function hasBand(points: Points): boolean {
  return points.min !== points.mean || points.max !== points.mean;
}

/** The first place whose x is at least `value`; the length if there is none. */
export function firstFrom(x: Numbers, value: number): number {
  let low = 0;
  let high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The place whose x is nearest to `value`; −1 if there is none. */
export function nearest(x: Numbers, value: number): number {
  const after = firstFrom(x, value);
  if (after === 0) return x.length ? 0 : -1;
  if (after === x.length) return after - 1;
  return value - x[after - 1]! <= x[after]! - value ? after - 1 : after;
}

/** The places that show in a range, first and last; with the neighbours outside, to which lines are drawn. */
export function shown(x: Numbers, range: Range): readonly [first: number, last: number] {
  const last = firstFrom(x, range[1]);
  return [Math.max(0, firstFrom(x, range[0]) - 1), Math.min(x.length - 1, last)];
}

/**
 * `whole`, with the finer buckets `part` in the place of those that begin within `range`.
 *
 *     whole   x 0 100 200 300     part (of 100 to 199)   x 100 110 … 190
 *     spliced x 0 100 110 … 190 200 300
 */
export function spliced(whole: Points, part: Points, range: Range): Points {
  if (!part.x.length) return whole;
  const from = firstFrom(whole.x, Math.min(range[0], part.x[0]!));
  const to = Math.max(from, firstFrom(whole.x, range[1] + Number.MIN_VALUE));
  const join = (one: Numbers, other: Numbers): Numbers => {
    const result = new Float64Array(from + other.length + one.length - to);
    result.set(one.subarray(0, from));
    result.set(other, from);
    result.set(one.subarray(to), from + other.length);
    return result;
  };
  const mean = join(whole.mean, part.mean);
  const plain = !hasBand(whole) && !hasBand(part);
  return {
    x: join(whole.x, part.x),
    mean,
    min: plain ? mean : join(whole.min, part.min),
    max: plain ? mean : join(whole.max, part.max),
    count: whole.count && part.count && join(whole.count, part.count),
    wrong: whole.wrong && part.wrong && join(whole.wrong, part.wrong),
  };
}

/**
 * The points with another curve's values as x, found by what both had as x, between two points in proportion.
 *
 *     points x 0 10 20, y 5 4 3     by x 0 20, y 100 300     result x 100 200 300, y 5 4 3
 */
export function against(points: Points, by: Points): Points {
  const x = Float64Array.from(points.x, (value) => valueAt(by, value));
  const order = [...x.keys()].filter((at) => Number.isFinite(x[at]));
  order.sort((one, other) => x[one]! - x[other]!);
  const pick = (numbers: Numbers): Float64Array => Float64Array.from(order, (at) => numbers[at]!);
  const mean = pick(points.mean);
  const plain = !hasBand(points);
  return {
    x: pick(x),
    mean,
    min: plain ? mean : pick(points.min),
    max: plain ? mean : pick(points.max),
    count: points.count && pick(points.count),
    wrong: points.wrong && pick(points.wrong),
    origin: pick(points.x),
  };
}

function valueAt(points: Points, x: number): number {
  const after = firstFrom(points.x, x);
  if (points.x[after] === x) return points.mean[after]!;
  if (after === 0 || after === points.x.length) return NaN;
  const [left, right] = [points.x[after - 1]!, points.x[after]!];
  const part = (x - left) / (right - left);
  return points.mean[after - 1]! * (1 - part) + points.mean[after]! * part;
}

/** The least and the greatest x of all; null if there is no point. */
export function extentOfX(all: Iterable<Points>, log: boolean): Range | null {
  let least = Infinity;
  let greatest = -Infinity;
  for (const { x } of all) {
    const first = log ? firstFrom(x, Number.MIN_VALUE) : 0;
    if (first >= x.length) continue;
    least = Math.min(least, x[first]!);
    greatest = Math.max(greatest, x[x.length - 1]!);
  }
  return least <= greatest ? [least, greatest] : null;
}

/** The least and the greatest value within a range of x; with `log`, of the positive ones. Null if there is none. */
export function extentOfY(all: Iterable<Points>, range: Range, log: boolean): Range | null {
  let least = Infinity;
  let greatest = -Infinity;
  for (const { x, min, max } of all) {
    const [first, last] = within(x, range);
    for (let at = first; at < last; at++) {
      const low = min[at]!;
      const high = max[at]!;
      if (high > greatest && (!log || high > 0)) greatest = high;
      if (low < least && (!log || low > 0)) least = low;
      else if (log && high > 0 && high < least) least = high;
    }
  }
  return least <= greatest ? [least, greatest] : null;
}

/** As extentOfY, without the twentieth of the buckets that lie lowest, and that which lie highest. */
export function extentWithoutOutliers(all: Iterable<Points>, range: Range, log: boolean): Range | null {
  const values: number[] = [];
  for (const { x, mean } of all) {
    const [first, last] = within(x, range);
    for (let at = first; at < last; at++)
      if (Number.isFinite(mean[at]) && (!log || mean[at]! > 0)) values.push(mean[at]!);
  }
  if (!values.length) return null;
  values.sort((one, other) => one - other);
  const place = (part: number): number => values[Math.round(part * (values.length - 1))]!;
  return [place(0.05), place(0.95)];
}

/** Further out there is no room: sums of such numbers would be infinite, and their quotients 0. */
const OUTERMOST = Number.MAX_VALUE / 4;

/** A range with some room around it; a single value gets some on both sides. */
export function roomy(range: Range, log: boolean): Range {
  const [low, high] = withRoom(range.map(bounded) as [number, number], log);
  return [log ? Math.max(low, 1 / OUTERMOST) : bounded(low), bounded(high)];
}

function bounded(value: number): number {
  return Math.max(-OUTERMOST, Math.min(OUTERMOST, value));
}

function withRoom([least, greatest]: Range, log: boolean): Range {
  if (log) {
    const factor = least === greatest ? 2 : (greatest / least) ** 0.04;
    return [least / factor, greatest * factor];
  }
  const room = (greatest - least) * 0.05 || Math.abs(greatest) * 0.1 || 1;
  return [least - room, greatest + room];
}

/** The sum of the numbers of the buckets that begin within a range. */
export function sumWithin(x: Numbers, numbers: Numbers, range: Range): number {
  const [first, last] = within(x, range);
  let sum = 0;
  for (let at = first; at < last; at++) sum += numbers[at]!;
  return sum;
}

/** The places that lie in a range; at least the last that began before it, whose bucket may reach into it. */
function within(x: Numbers, range: Range): readonly [first: number, behind: number] {
  const first = firstFrom(x, range[0]);
  const behind = firstFrom(x, range[1] + Math.abs(range[1]) * Number.EPSILON + Number.MIN_VALUE);
  return first < behind ? [first, behind] : [Math.max(0, first - 1), Math.min(x.length, behind + 1)];
}
