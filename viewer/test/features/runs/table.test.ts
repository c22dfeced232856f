import assert from "node:assert/strict";
import { test } from "node:test";

import { candidatesOf, fromRuns } from "../../../src/features/runs/choosing";
import { columnOf, readingsOf, textOf, withColumn } from "../../../src/features/runs/columns";
import { Layout, type Part } from "../../../src/features/runs/layout";
import {
  moved,
  namesOf,
  namesText,
  nextSort,
  parametersOf,
  type Shown,
  shownOf,
  USUAL,
  whereOf,
} from "../../../src/features/runs/shown";

const SHOWN: Shown = {
  columns: ["name", "hyperparams.Args/a,b", "min:loss/train, all"],
  sort: "min:loss/train",
  search: "a & b",
  conditions: [
    ["hyperparams.Args/lr", "<", 0.01],
    ["tags", "is", "a", null],
  ],
  group: "tags",
  inside: false,
  archived: true,
  curve: "loss/train",
  pinned: ["p1"],
  hidden: ["h1", "h2"],
  colours: { p1: 3, p2: 0 },
};

test("the address says all that is shown, and is read again as it was", () => {
  const query = new URLSearchParams(parametersOf(SHOWN) as Record<string, string>);
  assert.deepEqual(shownOf(new URLSearchParams(query.toString())), SHOWN);
});

test("what is as usual is not in the address", () => {
  const said = Object.entries(parametersOf({ ...USUAL, columns: [] })).filter(([, value]) => value !== null);
  assert.deepEqual(said, []);
  assert.deepEqual(
    shownOf(new URLSearchParams("where=[1,[],[1,2,3],[%22a%22,%22is%22,{}]]&colour=x.9,y&where=")),
    USUAL,
  );
});

test("a curve's name is read at each of its last eight slashes, the last one first", () => {
  assert.deepEqual(readingsOf("loss/train"), [["loss", "train"]]);
  assert.deepEqual(readingsOf("loss/train/top1"), [
    ["loss/train", "top1"],
    ["loss", "train/top1"],
  ]);
  const many = readingsOf("0/1/2/3/4/5/6/7/8/9");
  assert.equal(many.length, 8);
  assert.deepEqual(many.at(-1), ["0/1", "2/3/4/5/6/7/8/9"]);
  assert.deepEqual(readingsOf("loss"), []);
});

test("names may have commas in them", () => {
  for (const names of [["a"], ["a,b", "c"], []]) assert.deepEqual(namesOf(namesText(names)), names);
});

test("the filter has what is shown and more", () => {
  const where = JSON.parse(whereOf({ ...USUAL, search: " x " }, [["user", "is", "u"]])) as unknown;
  assert.deepEqual(where, {
    conditions: [
      ["system_tags", "is not", "archived"],
      ["user", "is", "u"],
    ],
    search_text: "x",
  });
});

test("a second click turns the order", () => {
  assert.equal(nextSort("-created", "name", true), "name");
  assert.equal(nextSort("name", "name", true), "-name");
  assert.equal(nextSort("name", "created", false), "-created");
  assert.equal(nextSort("-created", "created", false), "created");
});

test("entries move", () => {
  assert.deepEqual(moved(["a", "b", "c"], "c", "a"), ["c", "a", "b"]);
  assert.deepEqual(moved(["a", "b", "c"], "a", null), ["b", "c", "a"]);
  assert.deepEqual(moved(["a", "b"], "a", "a"), ["a", "b"]);
  assert.deepEqual(moved(["a"], "d", "a"), ["d", "a"]);
});

test("columns have titles", () => {
  assert.deepEqual([columnOf("hyperparams.Args/a/b").title, columnOf("hyperparams.Args/a/b").note], ["a/b", "Args"]);
  assert.deepEqual([columnOf("min_iter:a:b/c").title, columnOf("min_iter:a:b/c").note], ["a:b/c", "least at"]);
  assert.equal(columnOf("runtime.x").title, "runtime.x");
});

test("cells say their values", () => {
  assert.equal(textOf("number", 1234567), "1,234,567");
  assert.equal(textOf("number", 0.123456789), "0.123457");
  assert.equal(textOf("number", "NaN"), "NaN");
  assert.equal(textOf("duration", 3700), "1 h 1 min");
  assert.equal(textOf("choice", "u", new Map([["u", "Jane"]])), "Jane");
  assert.equal(textOf("list", ["a", "b"]), "a, b");
  assert.equal(textOf("text", null), "");
});

test("lines and rows lead to each other", () => {
  const parts: Part[] = [
    { hasHead: true, open: true, rows: 2 },
    { hasHead: true, open: false, rows: 5 },
    { hasHead: true, open: true, rows: 0 },
    { hasHead: false, open: true, rows: 3 },
  ];
  const layout = new Layout(parts);
  assert.equal(layout.lines, 8);
  const all = Array.from({ length: 8 }, (_, line) => layout.at(line)!);
  assert.deepEqual(
    all.map(({ part, row }) => [part, row]),
    [
      [0, -1],
      [0, 0],
      [0, 1],
      [1, -1],
      [2, -1],
      [3, 0],
      [3, 1],
      [3, 2],
    ],
  );
  for (const [n, line] of all.entries()) assert.equal(layout.lineOf(line), n);
  assert.equal(layout.at(8), null);
  assert.equal(layout.at(-1), null);
  assert.deepEqual(layout.within(2, 7), [
    { part: 0, first: 1, end: 2 },
    { part: 3, first: 0, end: 2 },
  ]);
  assert.deepEqual(new Layout([]).within(0, 5), []);
});

test("the metrics that most runs have and the parameters that differ are chosen, usual names first", () => {
  const candidates = candidatesOf({
    curves: [":monitor:gpu/load", "debug/norm", "accuracy/val", "loss/train", "loss/rare", "time/step"],
    parameters: ["hyperparams.Args/seed", "hyperparams.Args/epochs", "hyperparams.Args/width", "hyperparams.Args/lr"],
  });
  assert.deepEqual(
    candidates.curves,
    ["accuracy/val", "loss/rare", "loss/train", "debug/norm", "time/step"].map((one) => `last:${one}`),
  );
  assert.equal(candidates.parameters[0], "hyperparams.Args/lr");
  assert.equal(candidates.parameters.at(-1), "hyperparams.Args/seed");
  const runs = [0, 1, 2, 3].map((n) => ({
    "last:accuracy/val": n / 4,
    "last:loss/train": 0,
    "last:time/step": 1,
    "last:loss/rare": n === 0 ? 1 : null,
    "hyperparams.Args/lr": String(n),
    "hyperparams.Args/epochs": "90",
    "hyperparams.Args/seed": String(n),
  }));
  const found = [
    "last:accuracy/val",
    "last:loss/train",
    "last:time/step",
    "hyperparams.Args/lr",
    "hyperparams.Args/seed",
  ];
  assert.deepEqual(fromRuns(runs, candidates), found);
  const drafts = [{}, {}, {}, {}, {}].map(() => ({ "last:loss/train": null }));
  assert.deepEqual(fromRuns([...drafts, ...runs], candidates), found); // drafts have no results, and do not count
  assert.deepEqual(fromRuns(drafts, candidates), []);
});

test("a column that is chosen stands behind the last of its kind", () => {
  const columns = ["status", "last:loss/train", "hyperparams.Args/lr", "created", "last_iteration"];
  const put = (name: string): number => withColumn(columns, name).indexOf(name);
  assert.equal(put("min:loss/train"), 2);
  assert.equal(put("hyperparams.Args/seed"), 3);
  assert.equal(put("comment"), 5);
  assert.deepEqual(withColumn(["status"], "min:loss/train"), ["status", "min:loss/train"]);
});
