import assert from "node:assert/strict";
import { test } from "node:test";

import {
  type Brush,
  brushBetween,
  brushOf,
  brushText,
  chosenRows,
  passes,
  placeOfBrush,
  withBrush,
} from "../../../src/features/compare/brush";
import { commonEnds, compared, folded, linesOf, type Row } from "../../../src/features/compare/differences/diff";
import {
  countsOf,
  type Details,
  packagesOf,
  sectionsOf,
  shownRows,
} from "../../../src/features/compare/differences/differences";
import { nearestLine, nearestPoint, usualAxes } from "../../../src/features/compare/plots/plots";
import {
  bestRow,
  type Column,
  columnsOf,
  compareValues,
  directionOf,
  lessIsBetter,
  mainMetric,
  type Run,
  type Value,
} from "../../../src/features/compare/runs";
import { isWide, scaleOf } from "../../../src/features/compare/scales";
import { hiding, isHidden, parametersOf, parametersOfClearml, TABS, viewOf } from "../../../src/features/compare/view";
import { changed } from "../../../src/state/query";

const letters = (text: string): string[] => [...text];

/** What both sides of rows say: equal lines once, changes as -left +right. */
function written(left: string[], right: string[]): string {
  const side = (sign: string, line: string | null): string => (line === null ? "" : sign + line);
  return compared(left, right)
    .map(({ kind, left: i, right: j }) =>
      kind === "same" ? left[i!] : side("-", i === null ? null : left[i]!) + side("+", j === null ? null : right[j]!),
    )
    .join(" ");
}

test("lines that are the same are found, with the fewest changes", () => {
  assert.equal(written(letters("abc"), letters("acd")), "a -b c +d");
  assert.equal(written(letters("abcabba"), letters("cbabac")).match(/[-+]/g)!.length, 5);
  assert.equal(written([], letters("ab")), "+a +b");
  assert.equal(written(letters("ab"), []), "-a -b");
  assert.equal(written([], []), "");
  assert.equal(written(letters("axb"), letters("ayb")), "a -x+y b");
});

test("of any two texts, each line is in the comparison once and in order", () => {
  let seed = 7;
  const dice = (sides: number): number => (seed = (seed * 48271) % 2147483647) % sides;
  for (let turn = 0; turn < 300; turn++) {
    const make = (): string[] => Array.from({ length: dice(12) }, () => "abc"[dice(3)]!);
    const [left, right] = [make(), make()];
    const rows = compared(left, right);
    const places = (side: "left" | "right"): number[] => rows.map((row) => row[side]).filter((at) => at !== null);
    assert.deepEqual(places("left"), [...left.keys()]);
    assert.deepEqual(places("right"), [...right.keys()]);
    for (const { kind, left: i, right: j } of rows) if (kind === "same") assert.equal(left[i!], right[j!]);
  }
});

test("huge texts that have nothing in common are compared in bounded time", () => {
  const left = Array.from({ length: 50_000 }, (_, n) => `left ${n}`);
  const right = Array.from({ length: 50_000 }, (_, n) => `right ${n}`);
  const rows = compared(["same", ...left], ["same", ...right]);
  assert.equal(rows.length, 50_001);
  assert.equal(rows[0]!.kind, "same");
});

test("long stretches of equal lines are folded, those beside changes stay", () => {
  const same = (n: number): Row => ({ kind: "same", left: n, right: n });
  const rows: Row[] = [...Array.from({ length: 10 }, (_, n) => same(n)), { kind: "added", left: null, right: 10 }];
  assert.deepEqual(folded(rows, 2)[0], { kind: "gap", from: 0, count: 8 });
  assert.equal(folded(rows, 2).length, 4);
  assert.equal(folded(rows.slice(0, 3), 2).length, 1);
  assert.deepEqual(linesOf("a\r\nb\n"), ["a", "b"]);
  assert.deepEqual(commonEnds("lr: 0.1", "lr: 0.01"), [6, 1]);
});

function run(id: string, parameters: Record<string, string>, loss: number | null = null): Run {
  const hyperparams = {
    Args: Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, { value }])),
  };
  const last = { metric: "loss", variant: "val", value: loss ?? 0, min_value: loss ?? 0, max_value: loss ?? 0 };
  return {
    id,
    name: `run ${id}`,
    status: "completed",
    hyperparams,
    last_metrics: loss === null ? {} : { a: { b: last } },
  };
}

const RUNS = [
  run("1", { lr: "1e-4", opt: "sgd", seed: "1" }, 0.5),
  run("2", { lr: "0.1", opt: "adam", seed: "1" }, 0.25),
  run("3", { lr: "0.01", opt: "adam", seed: "1" }),
];

test("columns are numbers where all values are, and differ where they do", () => {
  const columns = columnsOf(RUNS);
  assert.deepEqual(columns.get("hyperparams.Args/lr")!.values, [0.0001, 0.1, 0.01]);
  assert.equal(columns.get("hyperparams.Args/opt")!.numbers, false);
  assert.deepEqual(columns.get("min:loss/val")!.values, [0.5, 0.25, null]);
  assert.equal(columns.get("hyperparams.Args/lr")!.label, "lr");
  assert.deepEqual(
    usualAxes(columns).map(({ name }) => name),
    ["hyperparams.Args/lr", "hyperparams.Args/opt", "min:loss/val"],
  );
  assert.equal(mainMetric(columns.values())!.name, "min:loss/val");
});

test("single values are columns, but no curves", () => {
  const last = {
    metric: "Summary",
    variant: "best",
    value: 1,
    min_value: 1,
    max_value: 1,
    min_value_iteration: -2147483648,
  };
  const columns = columnsOf([...RUNS, { ...RUNS[0]!, last_metrics: { a: { b: last } } }]);
  assert.equal(columns.get("last:Summary/best")!.series, undefined);
  assert.deepEqual(columns.get("last:loss/val")!.series, ["loss", "val"]);
});

test("the best value is the least of a loss and the greatest of an accuracy", () => {
  assert.equal(bestRow([3, null, 1, 2], lessIsBetter("loss/val")), 2);
  assert.equal(bestRow([3, null, 1, 2], lessIsBetter("accuracy")), 0);
  assert.equal(bestRow([null, "x"], true), -1);
  const names = ["loss/val", "val_F1", "top5/acc", "opt/lr", "acceleration", "step"];
  assert.deepEqual(names.map(directionOf), ["least", "greatest", "greatest", null, null, null]);
  assert.deepEqual([10, null, 9].sort(compareValues), [9, 10, null]);
});

function column(values: readonly Value[], kind: Column["kind"] = "parameter"): Column {
  const numbers = values.every((value) => value === null || typeof value === "number");
  return { name: "c", label: "c", kind, numbers, values };
}

test("a value has its place on linear, logarithmic and text axes", () => {
  const linear = scaleOf(column([0, 5, 10]), false);
  assert.deepEqual([linear.place(0), linear.place(5), linear.place(10), linear.place(null)], [0, 0.5, 1, null]);
  const log = scaleOf(column([0.001, 0.1]), true);
  assert.ok(Math.abs(log.place(0.01)! - 0.5) < 1e-9);
  assert.equal(log.place(0), null);
  const texts = scaleOf(column(["sgd", "adam", null, "lion"]), false);
  assert.deepEqual([texts.place("adam"), texts.place("lion"), texts.place("sgd")], [0, 0.5, 1]);
  assert.ok(isWide(column([1e-5, 0.1])));
  assert.ok(!isWide(column([1, 2])) && !isWide(column([0, 1000])));
  assert.equal(scaleOf(column([3, 3]), false).place(3), 0.5);
  for (const values of [
    [1, 2],
    [0.13, 0.92],
    [-5, 1e6],
    [1e-9, 2e-9],
  ]) {
    for (const { at } of scaleOf(column(values), false).ticks) assert.ok(at >= -1e-9 && at <= 1 + 1e-9);
  }
});

test("a brush over a whole axis lets all values through, and comes back from its text", () => {
  for (const log of [false, true]) {
    for (const values of [
      [0.1, 0.2, 0.3],
      [1e-5, 3e-4, 0.1],
      [12345.678, 12345.679],
    ]) {
      const scale = scaleOf(column(values), log);
      const brush = brushBetween("c", scale, 1, 0);
      for (const value of values) assert.ok(passes(brush, value), `${JSON.stringify(brush)} ${value}`);
      assert.deepEqual(brushOf(brushText(brush)), brush);
    }
  }
  const texts = scaleOf(column(["a", "b", "c"]), false);
  const brush = brushBetween("c", texts, 0.4, 1.001);
  assert.deepEqual(brush, { column: "c", texts: ["b", "c"] });
  assert.deepEqual(placeOfBrush(brush, texts), [0.5, 1]);
  assert.ok(passes(brush, "b") && !passes(brush, "a") && !passes(brush, null));
});

test("what is no brush is none", () => {
  for (const text of ["", "{", "[]", "[1,2,3]", '["c"]', '["c",1]', '["c",[1]]', '["c",null,2]'])
    assert.equal(brushOf(text), null);
});

test("runs are chosen that pass all brushes", () => {
  const columns = columnsOf(RUNS);
  const brushes: Brush[] = [
    { column: "hyperparams.Args/opt", texts: ["adam"] },
    { column: "hyperparams.Args/lr", from: 0.05, to: 1 },
    { column: "gone", from: 0, to: 1 },
  ];
  assert.deepEqual(chosenRows(3, columns, brushes), [false, true, false]);
  assert.deepEqual(withBrush(brushes, "gone", null).length, 2);
});

test("the line and the point next to the pointer are found", () => {
  const lines = [
    [0, 100],
    [100, 0],
    [100, 100],
  ];
  assert.equal(nearestLine(lines, [0, 100], [0, 1, 2], [50, 98], 10), 2);
  assert.equal(nearestLine(lines, [0, 100], [0, 1], [90, 89], 10), 0);
  assert.equal(nearestLine(lines, [0, 100], [0, 1, 2], [50, 20], 10), -1);
  assert.equal(nearestPoint([[0, 0], null, [10, 10]], [0, 1, 2], [8, 8], 5), 2);
  assert.equal(nearestPoint([[0, 0]], [0], [8, 8], 5), -1);
});

const DETAILS: Details[] = [
  {
    ...RUNS[0]!,
    type: "training",
    script: { version_num: "a1", requirements: { pip: "numpy==1.0\ntorch==2.0 # gpu\n" } },
    configuration: { m: { value: "a\nb" } },
  },
  {
    ...RUNS[1]!,
    type: "training",
    script: { version_num: "a1", requirements: { pip: ["numpy==1.1", "torch==2.0"] } },
    configuration: { m: { value: "a\nc" } },
  },
];

test("only what differs is shown", () => {
  const sections = sectionsOf(DETAILS);
  const differing = sections.flatMap((section) => shownRows(section, false, "").map(({ key }) => key));
  assert.deepEqual(differing, ["Parameters: Args/lr", "Parameters: Args/opt", "Configuration/m", "Packages/numpy"]);
  assert.ok(sections.flatMap((section) => shownRows(section, true, "")).some(({ key }) => key === "Packages/torch"));
  assert.deepEqual(
    shownRows(sections.find(({ title }) => title === "Packages")!, true, "NUM").map(({ name }) => name),
    ["numpy"],
  );
  assert.deepEqual(countsOf(["a", "b", null, "b"])[0], { value: "b", runs: 2 });
});

test("packages are read from lines and lists", () => {
  const listed = "# Python 3.12\nnumpy==1.0\ntorch @ https://x/y.whl\nlocal\nrequests>=2 ; python_version>'3'\n";
  assert.deepEqual(
    [...packagesOf({ pip: listed })],
    [
      ["numpy", "1.0"],
      ["torch", "https://x/y.whl"],
      ["local", "any version"],
      ["requests", ">=2 ; python_version>'3'"],
    ],
  );
  assert.equal(packagesOf(undefined).size, 0);
});

test("a view comes back from its address", () => {
  const view = viewOf(
    new URLSearchParams(
      'tasks=a,b&tab=scatter&base=b&hide=12345678&brush=["c",1,2]&logarithmic=c&axes=x&axes=y&across=p&up=q&group=*&bins=5&spread=quartiles&sort=-m&number=min&all=1&iter=7&only=lr',
    ),
  );
  assert.deepEqual(viewOf(changed(new URLSearchParams(), parametersOf(view))), view);
  assert.equal(viewOf(new URLSearchParams("tab=nothing&iter=x")).tab, TABS[0]);
});

test("hidden runs are named by the beginning of their ids", () => {
  const view = viewOf(new URLSearchParams("tasks=a"));
  const hidden = { ...view, hide: hiding(view, ["0123456789abcdef"], true) };
  assert.deepEqual(hidden.hide, ["01234567"]);
  assert.ok(isHidden(hidden.hide, "0123456789abcdef"));
  assert.deepEqual(hiding(hidden, ["0123456789abcdef"], false), []);
});

test("addresses of comparisons in ClearML's web UI are understood", () => {
  const shown = (given: string): unknown => {
    const { tasks, tab } = viewOf(changed(new URLSearchParams(), parametersOfClearml(given)));
    return [tasks, tab];
  };
  assert.deepEqual(shown("a,b/scalars/graph"), [["a", "b"], "curves"]);
  assert.deepEqual(shown("a,b/hyper-params/graph"), [["a", "b"], "parallel"]);
  assert.deepEqual(shown("a,b/details"), [["a", "b"], "differences"]);
  assert.deepEqual(shown("a"), [["a"], "curves"]);
});
