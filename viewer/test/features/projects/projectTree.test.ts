import assert from "node:assert/strict";
import { test } from "node:test";

import { linesOf, treeOf } from "../../../src/features/projects/projectTree";

const ROWS = ["a b", "a/b/c", "a", "x/y", "a/b", "a/B2"].map((name, n) => ({
  id: name,
  name,
  tasks: n + 1,
  last_update: `2026-01-0${n + 1}T00:00:00Z`,
}));

test("projects lie in those that their names begin with, and what they have adds up", () => {
  const tops = treeOf(ROWS, new Map([["a/b/c", 2]]));
  assert.deepEqual(
    tops.map((one) => one.name),
    ["a", "a b", "x/y"],
  );
  const [a] = tops;
  assert.deepEqual([a!.runs, a!.running, a!.last], [3 + 2 + 5 + 6, 2, Date.parse("2026-01-06T00:00:00Z")]);
  assert.deepEqual(
    a!.inside.map((one) => [one.title, one.level]),
    [
      ["b", 2],
      ["B2", 2],
    ],
  );
});

test("what is open is seen, and what is searched", () => {
  const tops = treeOf(ROWS, new Map());
  const names = (open: boolean, search: string): string[] => linesOf(tops, () => open, search).map((one) => one.name);
  assert.deepEqual(names(false, ""), ["a", "a b", "x/y"]);
  assert.deepEqual(names(true, ""), ["a", "a/b", "a/b/c", "a/B2", "a b", "x/y"]);
  assert.deepEqual(names(false, "C"), ["a", "a/b", "a/b/c"]);
  assert.deepEqual(names(true, "nothing"), []);
});
