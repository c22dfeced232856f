import assert from "node:assert/strict";
import { test } from "node:test";

import type { Points } from "../../src/chart/align";
import {
  dots,
  drawArea,
  drawBand,
  drawEnvelope,
  drawLine,
  holes,
  type Plane,
  placing,
  SvgPath,
} from "../../src/chart/paths";

const PLANE: Plane = {
  x: { min: 0, max: 10, start: 0, size: 100, log: false },
  y: { min: 0, max: 10, start: 100, size: -100, log: false },
};

function points(mean: number[], min = mean, max = mean): Points {
  const numbers = Float64Array.from(mean);
  return {
    x: Float64Array.from(mean, (_, at) => at),
    mean: numbers,
    min: min === mean ? numbers : Float64Array.from(min),
    max: max === mean ? numbers : Float64Array.from(max),
    count: null,
    wrong: null,
  };
}

function lineOf(given: Points, plane = PLANE): string {
  const pen = new SvgPath();
  drawLine(pen, given, plane);
  return pen.toString();
}

test("a line goes from point to point", () => assert.equal(lineOf(points([0, 5, 10])), "M0 100L10 50L20 0"));

test("where there is no number, a line has a gap", () => {
  assert.equal(lineOf(points([0, 1, NaN, 3, 4])), "M0 100L10 90M30 70L40 60");
});

test("a point far outside stays near", () => assert.ok(!lineOf(points([0, 1e300, 0])).includes("e")));

test("on a log scale, what is not positive is a gap", () => {
  const y = { min: 1, max: 100, start: 100, size: -100, log: true };
  assert.equal(lineOf(points([1, 0, 10, 100]), { ...PLANE, y }), "M0 100M20 50L30 0");
  assert.ok(Number.isNaN(placing(y)(-1)));
});

test("a band goes there along the greatest, and back along the least", () => {
  const pen = new SvgPath();
  drawBand(pen, points([1, 1], [0, 0], [2, 9]), PLANE);
  assert.equal(pen.toString(), "M0 80L10 10L10 100L0 100L0 80");
});

test("the band of a line without one is nothing, and gaps divide it", () => {
  const none = new SvgPath();
  drawBand(none, points([1, 2]), PLANE);
  assert.equal(none.toString(), "");
  const two = new SvgPath();
  drawBand(two, points([1, NaN, 1], [0, NaN, 0], [2, NaN, 2]), PLANE);
  assert.equal(two.toString().match(/M/g)?.length, 2);
});

test("the area of many buckets has few corners, and a gap where there is nothing", () => {
  const many = (value: number): number[] =>
    Array.from({ length: 1200 }, (_, at) => (at >= 500 && at < 700 ? NaN : value));
  const pen = new SvgPath();
  const all = { ...PLANE, x: { ...PLANE.x, max: 1200 } };
  drawArea(pen, points(many(5), many(4), many(6)), all);
  assert.equal(pen.toString().match(/M/g)?.length, 2);
  assert.ok(pen.toString().match(/[ML]/g)!.length <= 240);
  assert.ok(pen.toString().startsWith("M0.38 40L"));
});

test("the envelope of many buckets has few corners, and every spike, up and down", () => {
  const [least, greatest] = [-1, 1].map((value) => Array.from({ length: 400 }, () => value));
  greatest![123] = 9;
  least![321] = -9;
  const x = { min: 0, max: 399, start: 0, size: 100, log: false };
  const y = { min: -10, max: 10, start: 100, size: -100, log: false };
  const pen = new SvgPath();
  drawEnvelope(
    pen,
    points(
      greatest!.map(() => 0),
      least,
      greatest,
    ),
    { x, y },
    2,
  );
  const corners = pen.toString().slice(1).split("L");
  assert.equal(corners.length, 2 * Math.ceil(400 / 7));
  const heights = corners.map((corner) => Number(corner.split(" ")[1]));
  assert.deepEqual(
    [...new Set(heights)].sort((one, other) => one - other),
    [5, 45, 55, 95],
  );
  const [left] = corners[heights.indexOf(5)]!.split(" ");
  assert.ok(Math.abs(Number(left) - (123 / 399) * 100) < 2);
});

test("an envelope of few buckets is their band", () => {
  const [band, envelope] = [new SvgPath(), new SvgPath()];
  const few = points([1, 1], [0, 0], [2, 9]);
  drawBand(band, few, PLANE);
  drawEnvelope(envelope, few, PLANE, 4);
  assert.equal(envelope.toString(), band.toString());
});

test("points that lie far apart get dots, and those without a neighbour", () => {
  assert.equal(dots(points([1, 2, 3]), PLANE, 1).length, 3);
  const many = points(Array.from({ length: 40 }, (_, at) => (at === 4 || at === 6 ? NaN : 1)));
  const all = { ...PLANE, x: { ...PLANE.x, max: 40, size: 200 } };
  assert.deepEqual(dots(many, all, 1), [[25, 90]]);
});

test("points on the edges of the plane get dots and crosses, those outside of it none", () => {
  const middle = { x: { ...PLANE.x, min: 1, max: 3 }, y: { ...PLANE.y, min: 1, max: 3 } };
  assert.deepEqual(dots(points([0, 1, 3, 2, 0]), middle, 1), [
    [0, 100],
    [50, 0],
    [100, 50],
  ]);
  assert.deepEqual(dots(points([2, 0.5, 3.5, 2, 2]), middle, 1), [[100, 50]]);
  assert.deepEqual(holes(points([NaN, NaN, 1, NaN, NaN]), middle), [0, 100]);
});

test("numbers that are none are found", () => {
  assert.deepEqual(holes(points([1, NaN, 1]), PLANE), [10]);
  assert.deepEqual(holes({ ...points([1, 1, 1]), wrong: Float64Array.of(0, 0, 3) }, PLANE), [20]);
});
