import assert from "node:assert/strict";
import { test } from "node:test";

import {
  against,
  extentOfX,
  extentOfY,
  extentWithoutOutliers,
  firstFrom,
  nearest,
  type Points,
  roomy,
  shown,
  spliced,
  sumWithin,
} from "../../src/chart/align";

function points(
  x: number[],
  mean: number[],
  band: [number[], number[]] | null = null,
  count: number[] | null = null,
): Points {
  const line = Float64Array.from(mean);
  return {
    x: Float64Array.from(x),
    mean: line,
    min: band ? Float64Array.from(band[0]) : line,
    max: band ? Float64Array.from(band[1]) : line,
    count: count && Float64Array.from(count),
    wrong: null,
  };
}

test("places are found by x", () => {
  const x = Float64Array.of(0, 10, 20);
  assert.deepEqual(
    [-1, 0, 1, 20, 21].map((value) => firstFrom(x, value)),
    [0, 0, 1, 2, 3],
  );
  assert.deepEqual(
    [-5, 4, 6, 100].map((value) => nearest(x, value)),
    [0, 0, 1, 2],
  );
  assert.equal(nearest(new Float64Array(), 1), -1);
  assert.deepEqual(shown(x, [11, 12]), [1, 2]);
  assert.deepEqual(shown(x, [-9, 99]), [0, 2]);
});

test("finer buckets take the place of the coarse ones of their range", () => {
  const whole = points(
    [0, 100, 200, 300],
    [1, 2, 3, 4],
    [
      [0, 0, 0, 0],
      [9, 9, 9, 9],
    ],
    [100, 100, 100, 100],
  );
  const part = points(
    [100, 150],
    [5, 6],
    [
      [5, 5],
      [6, 6],
    ],
    [50, 50],
  );
  const both = spliced(whole, part, [100, 199]);
  assert.deepEqual([...both.x], [0, 100, 150, 200, 300]);
  assert.deepEqual([...both.mean], [1, 5, 6, 3, 4]);
  assert.deepEqual([...both.max], [9, 6, 6, 9, 9]);
  assert.deepEqual([...both.count!], [100, 50, 50, 100, 100]);
  assert.equal(spliced(whole, points([], []), [100, 199]), whole);
});

test("a bucket that begins before the range stays, and x ascend", () => {
  const whole = points([0, 100, 200], [1, 2, 3]);
  const both = spliced(whole, points([150, 160], [7, 8]), [150, 165]);
  assert.deepEqual([...both.x], [0, 100, 150, 160, 200]);
  assert.equal(both.min, both.mean);
});

test("a curve against another one has its values as x, in their order", () => {
  const curve = points([0, 10, 20, 30], [5, 4, 3, 2]);
  const by = points([0, 20], [300, 100]);
  const joined = against(curve, by);
  assert.deepEqual([...joined.x], [100, 200, 300]);
  assert.deepEqual([...joined.mean], [3, 4, 5]);
});

test("extremes are those of the band, and of the positive values on a log scale", () => {
  const one = points(
    [0, 1, 2],
    [0.1, 0.1, NaN],
    [
      [-1, 0.05, NaN],
      [9, 0.2, NaN],
    ],
  );
  assert.deepEqual(extentOfX([one], false), [0, 2]);
  assert.deepEqual(extentOfX([one], true), [1, 2]);
  assert.deepEqual(extentOfY([one], [0, 2], false), [-1, 9]);
  assert.deepEqual(extentOfY([one], [0, 2], true), [0.05, 9]);
  assert.deepEqual(extentOfY([one], [1, 2], false), [0.05, 0.2]);
  assert.equal(extentOfY([points([0], [NaN])], [0, 1], false), null);
});

test("between two points, the extremes are those of both", () => {
  assert.deepEqual(extentOfY([points([0, 10], [1, 2])], [4, 6], false), [1, 2]);
});

test("a single outlier does not count when outliers are left out", () => {
  const many = points([...Array(100).keys()], [...Array(99).fill(1), 1000]);
  assert.deepEqual(extentWithoutOutliers([many], [0, 99], false), [1, 1]);
});

test("points are counted within a range", () => {
  const counted = points([0, 10, 20], [1, 1, 1], null, [10, 10, 5]);
  assert.equal(sumWithin(counted.x, counted.count!, [0, 20]), 25);
  assert.equal(sumWithin(counted.x, counted.count!, [10, 15]), 10);
});

test("the room around a range ends where numbers do", () => {
  assert.deepEqual(roomy([0, 100], false), [-5, 105]);
  for (const range of [
    [1e-300, 1.7e308],
    [-1.7e308, 1.7e308],
    [1.7e308, 1.7e308],
  ] as const) {
    for (const log of range[0] > 0 ? [false, true] : [false]) {
      const [low, high] = roomy(range, log);
      assert.ok(low < high && Number.isFinite(high - low), `${low} to ${high}`);
    }
  }
});
