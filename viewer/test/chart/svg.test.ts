import assert from "node:assert/strict";
import { test } from "node:test";

import type { Points } from "../../src/chart/align";
import type { Line } from "../../src/chart/line";
import { type Style, svgOf } from "../../src/chart/svg";

const PLANE = {
  x: { min: 0, max: 1, start: 0, size: 100, log: false },
  y: { min: 0, max: 10, start: 100, size: -100, log: false },
};
const STYLE: Style = {
  title: "loss",
  dark: false,
  page: "#fff",
  text: "#000",
  grid: "#ccc",
  pixels: 1,
  splits: { x: [], y: [] },
};

function points(mean: number[], min: number[] | null = null, max: number[] | null = null): Points {
  const numbers = Float64Array.from(mean);
  const column = (values: number[] | null): Float64Array => (values ? Float64Array.from(values) : numbers);
  return { x: Float64Array.from([0, 1]), mean: numbers, min: column(min), max: column(max), count: null, wrong: null };
}

/** The paths of a picture of one line, without that in the legend. */
function paths(more: Partial<Line>): string[] {
  const line: Line = {
    key: "a",
    name: "a",
    colour: ["#111", "#eee"],
    metric: "loss",
    variant: "",
    task: null,
    points: points([5, 5]),
    ...more,
  };
  return [...svgOf([line], PLANE, STYLE).matchAll(/<path d="([^"]*)" (?:fill="#111" [^/]*)?stroke="#111"[^/]*\/>/g)]
    .map(([, d]) => d!)
    .slice(0, -1);
}

test("a line without a band is one path", () => assert.deepEqual(paths({}), ["M0 74L100 74"]));

test("the extremes of a group lie behind its band, and both behind its mean", () => {
  const found = paths({ points: points([5, 5], [4, 4], [6, 6]), outer: points([5, 5], [0, 0], [10, 10]) });
  assert.deepEqual(found, ["M0 24L100 24L100 124L0 124L0 24", "M0 64L100 64L100 84L0 84L0 64", "M0 74L100 74"]);
});

test("what was smoothed lies behind", () => {
  assert.deepEqual(paths({ faint: points([5, 7], [4, 6], [6, 8]) }), [
    "M0 64L100 44L100 64L0 84L0 64",
    "M0 74L100 54",
    "M0 74L100 74",
  ]);
});

test("points that lie far apart have dots in front of all lines, whole ones on the edges", () => {
  const [line, ...dots] = svgOf(
    [
      {
        key: "a",
        name: "a",
        colour: ["#111", "#eee"],
        metric: "loss",
        variant: "",
        task: null,
        points: points([0, 10]),
      },
    ],
    PLANE,
    STYLE,
  ).split("</g>");
  assert.ok(!line!.includes("<circle"));
  assert.deepEqual(
    [...dots.join("").matchAll(/cx="([^"]*)" cy="([^"]*)"/g)].map(([, x, y]) => [x, y]),
    [
      ["0.00", "124.00"],
      ["100.00", "24.00"],
    ],
  );
});
