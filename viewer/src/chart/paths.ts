/** Lines and bands as strokes of a pen: of a canvas (`Path2D`), or of an SVG (`SvgPath`). Pure. */

import { hasBand, type Numbers, type Points, type Range, shown } from "./align";

export interface Pen {
  moveTo(x: number, y: number): void;
  lineTo(x: number, y: number): void;
}

/** The text that the attribute `d` of an SVG's path takes. */
export class SvgPath implements Pen {
  private readonly parts: string[] = [];

  moveTo(x: number, y: number): void {
    this.parts.push(`M${round(x)} ${round(y)}`);
  }

  lineTo(x: number, y: number): void {
    this.parts.push(`L${round(x)} ${round(y)}`);
  }

  toString(): string {
    return this.parts.join("");
  }
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

/** Where values lie: `min` at the pixel `start`, `max` at `start + size`. */
export interface Scale {
  readonly min: number;
  readonly max: number;
  readonly start: number;
  readonly size: number;
  readonly log: boolean;
}

/** Far outside of any canvas: further away, some browsers draw nothing. */
const FAR = 30_000;

/** The function from values to pixels. On a log scale, what is not positive is NaN. */
export function placing({ min, max, start, size, log }: Scale): (value: number) => number {
  const [low, high] = log ? [Math.log(min), Math.log(max)] : [min, max];
  const factor = size / (high - low);
  const bounded = (pixel: number): number => Math.max(-FAR, Math.min(FAR, pixel));
  if (log) return (value) => (value > 0 ? bounded(start + (Math.log(value) - low) * factor) : NaN);
  return (value) => bounded(start + (value - low) * factor);
}

/** Where the points of a line are drawn. */
export interface Plane {
  readonly x: Scale;
  readonly y: Scale;
}

/** Draw a line through the means, or through other numbers. Where there is none, the line has a gap. */
export function drawLine(pen: Pen, points: Points, plane: Plane, numbers: Numbers = points.mean): void {
  const [toX, toY] = [placing(plane.x), placing(plane.y)];
  const [first, last] = shown(points.x, rangeOf(plane));
  let down = false;
  for (let at = first; at <= last; at++) {
    const x = toX(points.x[at]!);
    const y = toY(numbers[at]!);
    if (Number.isNaN(y) || Number.isNaN(x)) {
      down = false;
      continue;
    }
    if (down) pen.lineTo(x, y);
    else pen.moveTo(x, y);
    down = true;
  }
}

/** Draw around the area between least and greatest: there along the greatest, back along the least. */
export function drawBand(pen: Pen, points: Points, plane: Plane): void {
  if (!hasBand(points)) return;
  const [toX, toY] = [placing(plane.x), placing(plane.y)];
  const [first, last] = shown(points.x, rangeOf(plane));
  const bottom = plane.y.start;
  const { x, min, max } = points;
  let begin = first;
  while (begin <= last) {
    if (!Number.isFinite(toY(max[begin]!)) || !Number.isFinite(toX(x[begin]!))) {
      begin++;
      continue;
    }
    let end = begin;
    pen.moveTo(toX(x[begin]!), toY(max[begin]!));
    while (end < last) {
      const y = toY(max[end + 1]!);
      if (!Number.isFinite(y)) break;
      end++;
      pen.lineTo(toX(x[end]!), y);
    }
    for (let at = end; at >= begin; at--) {
      const y = toY(min[at]!);
      pen.lineTo(toX(x[at]!), Number.isNaN(y) ? bottom : y);
    }
    pen.lineTo(toX(x[begin]!), toY(max[begin]!));
    begin = end + 1;
  }
}

/** An area has about so many corners on each side: filling one of thousands takes ten times as long as stroking it. */
const CORNERS = 120;

/**
 * Draw around the area of a band, roughly: neighbouring buckets are put together, with the mean of their least and of
 * their greatest values. What sticks out is drawn by `drawBand`, as a stroke.
 */
export function drawArea(pen: Pen, points: Points, plane: Plane): void {
  const [first, last] = shown(points.x, rangeOf(plane));
  drawTogether(pen, points, plane, Math.ceil((last - first + 1) / CORNERS), [meanOf, meanOf]);
}

/**
 * Draw around a band as `drawBand` does, but buckets that share `pixels` are put together, with the greatest of their
 * greatest values and the least of their least: no spike is lost, and a dense jagged band takes a quarter of the time.
 */
export function drawEnvelope(pen: Pen, points: Points, plane: Plane, pixels: number): void {
  const [first, last] = shown(points.x, rangeOf(plane));
  drawTogether(pen, points, plane, Math.floor((pixels * (last - first)) / plane.x.size), [highestOf, lowestOf]);
}

/** A pixel for the numbers from one place up to, but not including, another. */
type Summary = (numbers: Numbers, first: number, end: number, place: (value: number) => number) => number;

/** Draw around a band with `size` neighbouring buckets put together. */
function drawTogether(
  pen: Pen,
  points: Points,
  plane: Plane,
  size: number,
  [high, low]: readonly [Summary, Summary],
): void {
  if (!hasBand(points)) return;
  if (size <= 1) {
    drawBand(pen, points, plane);
    return;
  }
  const [first, last] = shown(points.x, rangeOf(plane));
  const [toX, toY] = [placing(plane.x), placing(plane.y)];
  let [above, below]: [number[], number[]] = [[], []];
  for (let at = first; at <= last; at += size) {
    const end = Math.min(at + size, last + 1);
    const [top, bottom] = [high(points.max, at, end, toY), low(points.min, at, end, toY)];
    const x = (toX(points.x[at]!) + toX(points.x[end - 1]!)) / 2;
    if (!Number.isNaN(top) && !Number.isNaN(x)) {
      above.push(x, top);
      below.push(x, Number.isNaN(bottom) ? plane.y.start : bottom);
      continue;
    }
    closeArea(pen, above, below);
    [above, below] = [[], []];
  }
  closeArea(pen, above, below);
}

function meanOf(...[numbers, first, end, place]: Parameters<Summary>): number {
  let [sum, count] = [0, 0];
  for (let at = first; at < end; at++) {
    const pixel = place(numbers[at]!);
    if (Number.isNaN(pixel)) continue;
    sum += pixel;
    count++;
  }
  return sum / count;
}

/** Pixels count downwards: the highest one is the least. */
function highestOf(...[numbers, first, end, place]: Parameters<Summary>): number {
  let found = NaN;
  for (let at = first; at < end; at++) {
    const pixel = place(numbers[at]!);
    if (!Number.isNaN(pixel) && !(found <= pixel)) found = pixel;
  }
  return found;
}

function lowestOf(...[numbers, first, end, place]: Parameters<Summary>): number {
  let found = NaN;
  for (let at = first; at < end; at++) {
    const pixel = place(numbers[at]!);
    if (!Number.isNaN(pixel) && !(found >= pixel)) found = pixel;
  }
  return found;
}

/** There along one side, back along the other. Both are x, y, x, y and so on. */
function closeArea(pen: Pen, above: readonly number[], below: readonly number[]): void {
  for (let at = 0; at < above.length; at += 2) {
    if (at) pen.lineTo(above[at]!, above[at + 1]!);
    else pen.moveTo(above[at]!, above[at + 1]!);
  }
  for (let at = below.length - 2; at >= 0; at -= 2) pen.lineTo(below[at]!, below[at + 1]!);
}

/** Points that lie further apart than so many pixels get dots. */
const PIXELS_A_DOT = 9;
/** Pixels from the middle of a dot to its edge. */
export const DOT = 2.5;

/**
 * The pixels of the points in the plane that get a dot: all if they lie far apart, else those without a neighbour.
 * `pixels`: how many device pixels a pixel of the page has.
 */
export function dots(points: Points, plane: Plane, pixels: number): readonly (readonly [x: number, y: number])[] {
  const [toX, toY] = [placing(plane.x), placing(plane.y)];
  const [first, last] = shown(points.x, rangeOf(plane));
  const sparse = (last - first + 1) * PIXELS_A_DOT * pixels < plane.x.size;
  const found: [number, number][] = [];
  const isThere = (at: number): boolean => at >= 0 && at < points.x.length && Number.isFinite(points.mean[at]!);
  for (let at = first; at <= last; at++) {
    if (!isThere(at) || (!sparse && (isThere(at - 1) || isThere(at + 1)))) continue;
    const [x, y] = [toX(points.x[at]!), toY(points.mean[at]!)];
    if (isWithin(x, plane.x) && isWithin(y, plane.y)) found.push([x, y]);
  }
  return found;
}

/** Whether a pixel lies between both ends of a scale, or on one of them, but for what rounding makes of it. */
function isWithin(pixel: number, { start, size }: Scale): boolean {
  return pixel >= Math.min(start, start + size) - 0.01 && pixel <= Math.max(start, start + size) + 0.01;
}

/** The pixels in the plane of buckets that have NaN or infinities among their values, or nothing else. */
export function holes(points: Points, plane: Plane): readonly number[] {
  const toX = placing(plane.x);
  const [first, last] = shown(points.x, rangeOf(plane));
  const found: number[] = [];
  for (let at = first; at <= last; at++) {
    const x = toX(points.x[at]!);
    if (isWithin(x, plane.x) && (points.wrong ? points.wrong[at]! > 0 : !Number.isFinite(points.mean[at]!)))
      found.push(x);
  }
  return found;
}

function rangeOf(plane: Plane): Range {
  return [plane.x.min, plane.x.max];
}
