/** Finds the one point that a bucket shows: the least of it, the greatest, or that which is nearest to its mean. */

import { bytes } from "../api/client";
import { type Curve, curvesOf } from "../api/columns";
import { type Numbers, nearest, type Range } from "./align";
import type { Line } from "./line";
import type { Axis } from "./source";

export interface Located {
  readonly iteration: number;
  /** Milliseconds since 1970. */
  readonly time: number;
  readonly value: number;
}

export type End = "min" | "mean" | "max";

/** Buckets with more points are put together in so many finer ones first. */
const MANY = 20_000;
const FINER = 2000;

/** The point at a place of a line. Null if it is not there any more. Throws ServerError. */
export async function locate(
  task: string,
  line: Line,
  place: number,
  end: End,
  axis: Axis,
  signal: AbortSignal,
): Promise<Located | null> {
  const points = line.faint ?? line.points;
  const at = line.faint ? nearest(points.x, line.points.x[place]!) : place;
  const by = points.origin ?? points.x;
  const path = `/data/tasks/${encodeURIComponent(task)}/scalars.bin`;
  const ask = async ([from, to]: Range, more: Record<string, string | number>): Promise<Curve | undefined> => {
    const { metric, variant } = line;
    const curves = curvesOf(await bytes(path, { metric, variant, axis, from, to, bits: 64, ...more }, signal));
    return curves.find((curve) => curve.metric === metric && curve.variant === variant);
  };
  let range = bucketOf(by, at);
  for (let count = points.count?.[at] ?? 1; count > MANY; ) {
    const finer = await ask(range, { points: FINER, columns: "count,mean,min,max" });
    if (!finer?.rows) return null;
    const chosen = placeOf(finer.columns[end]!, points[end][at]!);
    range = within(bucketOf(finer.x, chosen), range);
    const fewer = finer.columns["count"]![chosen]!;
    if (fewer >= count) break; // many points at one x
    count = fewer;
  }
  const found = await ask(range, {});
  if (!found?.rows) return null;
  const values = found.columns["value"]!;
  const chosen = placeOf(values, points[end][at]!);
  return { iteration: found.x[chosen]!, time: found.columns["timestamp"]![chosen]!, value: values[chosen]! };
}

/** The whole numbers of x that belong to a bucket: up to the next one, as wide as the one before if it is the last. */
export function bucketOf(x: Numbers, at: number): Range {
  const from = x[at]!;
  const next = x[at + 1] ?? from + (at > 0 ? from - x[at - 1]! : 1);
  return [Math.floor(from), Math.max(Math.floor(from), Math.ceil(next) - 1)];
}

function within([from, to]: Range, [least, greatest]: Range): Range {
  return [Math.max(from, least), Math.min(to, greatest)];
}

/** The place of the number that is nearest to a value; what is no number is far from all but NaN. */
export function placeOf(numbers: Numbers, value: number): number {
  let best = 0;
  let distance = Infinity;
  numbers.forEach((number, at) => {
    const away = Number.isNaN(value) ? Number(Number.isFinite(number)) : Math.abs(number - value);
    if (away < distance) [best, distance] = [at, away];
  });
  return best;
}
