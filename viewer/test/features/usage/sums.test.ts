import assert from "node:assert/strict";
import { test } from "node:test";

import { fullness, percent, type QuotaRow, quotasOf, sumsBy, type UsageRow } from "../../../src/features/usage/sums";

const NOTHING = { bytes: 0, series: 0, points: 0, lines: 0, samples: 0, files: 0 };

function row(project: string, type: string, amounts: Partial<UsageRow>): UsageRow {
  return { project, project_name: `name of ${project}`, type, ...NOTHING, ...amounts };
}

test("rows are added up by key, those of most bytes first", () => {
  const rows = [
    row("a", "scalars", { bytes: 10, points: 3, series: 1 }),
    row("b", "scalars", { bytes: 15 }),
    row("a", "logs", { bytes: 20, lines: 2 }),
  ];
  const sums = sumsBy(rows, (one) => one.project).map(({ key, bytes, points, lines, series }) => [
    key,
    bytes,
    points,
    lines,
    series,
  ]);
  assert.deepEqual(sums, [
    ["a", 30, 3, 2, 1],
    ["b", 15, 0, 0, 0],
  ]);
  assert.deepEqual(
    sumsBy(rows, (one) => one.type).map(({ key, bytes }) => [key, bytes]),
    [
      ["scalars", 25],
      ["logs", 20],
    ],
  );
  assert.deepEqual(
    sumsBy([], (one) => one.type),
    [],
  );
});

test("a part in percent never says all or nothing of what is neither", () => {
  const parts = [0, 0.00001, 0.0001, 0.0042, 0.01, 0.8312, 0.9999, 1, 1.234];
  const said = ["0 %", "< 0.01 %", "0.01 %", "0.42 %", "1 %", "83 %", "99 %", "100 %", "123 %"];
  assert.deepEqual(parts.map(percent), said);
});

test("quotas are found by what they are of", () => {
  const quota = {
    of: "project",
    id: "p",
    name: "a",
    bounded: "bytes",
    used: 1,
    quota: 2,
    kind: "project",
  } as const satisfies QuotaRow;
  const others: QuotaRow[] = [
    { ...quota, of: "task" },
    { ...quota, id: "q" },
  ];
  assert.deepEqual(quotasOf([...others, quota], "project", "p"), [quota]);
});

test("words say whether a quota is used up", () => {
  const quota: QuotaRow = { of: "task", id: "t", name: "a", bounded: "series", used: 0, quota: 100, kind: "task" };
  const said = [0, 79, 80, 99, 100, 130].map((used) => fullness({ ...quota, used }));
  assert.deepEqual(said, ["", "", "nearly used up", "nearly used up", "used up", "used up"]);
});
