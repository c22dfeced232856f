/** The curves that a chart shows: all of them in coarse buckets, and what is zoomed to in finer ones. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import type { Curve } from "../api/columns";
import { useAsked } from "../hooks/asked";
import { against, extentOfX, type Points, pointsOf, type Range, spliced, sumWithin } from "./align";
import type { Line } from "./line";
import type { Loader, OneAsk } from "./loader";
import type { ChartSource, ChartSpec } from "./source";
import type { Together } from "./sync";
import type { AxisKind } from "./ticks";
import { type AxisChoice, askedAxis, type View } from "./view";

/** What a chart needs to know of its page. */
export interface Asker {
  readonly source: ChartSource;
  readonly loader: Loader;
  readonly together: Together;
}

export interface Count {
  readonly points: number;
  readonly wrong: number;
}

export interface Shown {
  readonly lines: readonly Line[];
  /** What x of the lines is: it stays the old one until the lines of a new one have come. */
  readonly kind: AxisKind;
  /** The range that the lines may be zoomed to: that of the view, if it is of the same axis. */
  readonly range: Range | null;
  /** Points in the range, and how many of them are NaN or infinite; null if that is not known. */
  readonly count: Count | null;
  readonly error: Error | null;
  readonly waiting: boolean;
  readonly again: () => void;
}

/** An answer, and what was asked. */
interface Answer {
  readonly axis: AxisChoice;
  readonly smooth: string;
  readonly range: Range | null;
  readonly curves: readonly Curve[];
  readonly smoothed: readonly Curve[] | null;
  readonly by: Points | null;
}

const ALL = ["count", "mean", "min", "max", "not_finite"] as const;

/**
 * Milliseconds that a chart waits for finer buckets, after somebody zoomed another one, before it draws those that it has
 * in the new range. The chart that was zoomed draws at once: the others leave the browser time for it, and most are drawn
 * only once.
 */
const LATE = 400;

/** The lines of a chart that is `width` pixels wide. */
export function useCurves(spec: ChartSpec, view: View, asker: Asker, width: number): Shown {
  const { axis, smooth } = view;
  const points = Math.min(2000, Math.max(100, Math.round(width / 50) * 50));
  const asked = `${JSON.stringify([spec.metric, spec.variants, axis, smooth, points])}@${sourceNumber(asker.source)}`;
  const whole = useAsked(asked, (signal) => answer(spec, view, asker, points, null, false, signal));

  const isFirst = asker.together.zoomed === spec.id;
  const follows = !isFirst && asker.together.zoomed !== null;
  const zoomed = view.range && whole.value ? askedRange(view.range, whole.value) : null;
  const detail = useAsked(zoomed && `${asked}${zoomed.join()}`, (signal) =>
    answer(spec, view, asker, Math.min(3000, points * 1.5), zoomed, isFirst, signal),
  );

  const [coarse, fine] = [whole.value, detail.value];
  const lines = useMemo(() => (coarse ? linesOf(coarse, fine, asker.source) : []), [coarse, fine, asker.source]);
  const isLate = follows && zoomed !== null && zoomed.join() !== fine?.range?.join() && !detail.error;
  const held = useHeld(view.range, isLate, LATE);
  const range = coarse && sameAxis(coarse.axis, axis) ? held : null;
  const count = useMemo(() => countOf(lines, range), [lines, range?.[0], range?.[1]]);

  const zoomedNow = useRef(false);
  zoomedNow.current = zoomed !== null;
  const again = useRef(() => {
    whole.again();
    if (zoomedNow.current) detail.again();
  });
  return {
    lines,
    kind: coarse ? kindOf(coarse.axis) : kindOf(axis),
    range,
    count,
    error: whole.error ?? detail.error,
    waiting: whole.waiting || detail.waiting,
    again: again.current,
  };
}

/** The value; while `isHeld` is true, the one before, for at most so many milliseconds. */
function useHeld<T>(value: T, isHeld: boolean, longest: number): T {
  const kept = useRef(value);
  const latest = useRef(value);
  const [, drawAgain] = useState(0);
  latest.current = value;
  if (!isHeld) kept.current = value;
  const isOld = kept.current !== value;
  useEffect(() => {
    if (!isOld) return;
    const timer = setTimeout(() => {
      kept.current = latest.current;
      drawAgain((turn) => turn + 1);
    }, longest);
    return () => clearTimeout(timer);
  }, [isOld, longest]);
  return kept.current;
}

async function answer(
  { metric, variants }: ChartSpec,
  { axis, smooth }: View,
  { loader }: Asker,
  points: number,
  range: Range | null,
  first: boolean,
  signal: AbortSignal,
): Promise<Answer> {
  const ask: OneAsk = { metric, variants, axis: askedAxis(axis), points, smooth: "", range, columns: ALL };
  const derived = smooth === "derivative";
  const [curves, smoothed, by] = await Promise.all([
    loader.load(derived ? { ...ask, smooth } : ask, signal, first),
    smooth && !derived ? loader.load({ ...ask, smooth, columns: ["mean"] }, signal, first) : null,
    typeof axis === "object"
      ? loader.load({ ...ask, metric: axis.metric, variants: [axis.variant], columns: ["mean"] }, signal, first)
      : null,
  ]);
  return { axis, smooth, range, curves, smoothed, by: by?.[0] ? pointsOf(by[0]) : null };
}

function linesOf(coarse: Answer, fine: Answer | null, source: ChartSource): Line[] {
  const usable = fine && sameAxis(fine.axis, coarse.axis) && fine.smooth === coarse.smooth ? fine : null;
  const curves = coarse.curves.filter(({ rows }) => rows > 0);
  const looks = source.looks(curves);
  const by = coarse.by && usable?.by ? spliced(coarse.by, usable.by, usable.range!) : coarse.by;
  return curves.map((curve, number) => {
    const both = (one: readonly Curve[] | null, other: readonly Curve[] | null | undefined): Points | null => {
      const found = one && same(one, curve);
      const finer = other && same(other, curve);
      if (!found) return null;
      const points = finer ? spliced(pointsOf(found), pointsOf(finer), usable!.range!) : pointsOf(found);
      return by ? against(points, by) : points;
    };
    const raw = both(coarse.curves, usable?.curves)!;
    const smoothed = both(coarse.smoothed, usable?.smoothed);
    return {
      ...looks[number]!,
      metric: curve.metric,
      variant: curve.variant,
      task: curve.task ?? null,
      points: smoothed ?? raw,
      faint: smoothed ? raw : null,
      outer: outerOf(curve, usable, by),
    };
  });
}

/** The extremes of a group's runs, around its mean. Null for a line that is no group. */
function outerOf(curve: Curve, fine: Answer | null, by: Points | null): Points | null {
  const extremes = (one: Curve): Points | null => {
    const { mean, least: min, greatest: max } = one.columns;
    return mean && min && max ? pointsOf({ ...one, columns: { mean, min, max } }) : null;
  };
  const whole = extremes(curve);
  const part = fine && same(fine.curves, curve);
  const finer = part && extremes(part);
  const points = whole && finer ? spliced(whole, finer, fine.range!) : whole;
  return points && by ? against(points, by) : points;
}

function same(curves: readonly Curve[], { task, group, variant }: Curve): Curve | undefined {
  return curves.find((one) => one.variant === variant && one.task === task && one.group === group);
}

/** The range to ask for: a little more than what shows. On another curve as the axis: the iterations that it has there. */
function askedRange([from, to]: Range, { axis, by, curves }: Answer): Range | null {
  const room = (to - from) * 0.1;
  if (typeof axis !== "object") return [Math.floor(from - room), Math.ceil(to + room)];
  if (!by) return null;
  const inside = by.x.filter((_, at) => by.mean[at]! >= from - room && by.mean[at]! <= to + room);
  const widest = extentOfX(curves.map(pointsOf), false);
  if (!inside.length || !widest) return null;
  return [inside[0]!, inside[inside.length - 1]!];
}

function countOf(lines: readonly Line[], range: Range | null): Count | null {
  const seen =
    range ??
    extentOfX(
      lines.map(({ points }) => points),
      false,
    );
  const sum = { points: 0, wrong: 0 };
  for (const line of lines) {
    const { x, count, wrong } = line.faint ?? line.points;
    if (!seen || !count) return null;
    sum.points += sumWithin(x, count, seen);
    sum.wrong += wrong ? sumWithin(x, wrong, seen) : 0;
  }
  return sum;
}

function kindOf(axis: AxisChoice): AxisKind {
  return typeof axis === "string" ? axis : "value";
}

function sameAxis(one: AxisChoice, other: AxisChoice): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Sources that are not the same object answer something else. */
const numbers = new WeakMap<ChartSource, number>();
let last = 0;
function sourceNumber(source: ChartSource): number {
  const found = numbers.get(source);
  if (found !== undefined) return found;
  numbers.set(source, ++last);
  return last;
}
