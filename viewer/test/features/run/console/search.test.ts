import assert from "node:assert/strict";
import { test } from "node:test";

import type { Hits, Wanted } from "../../../../src/features/run/console/ask";
import { Search } from "../../../../src/features/run/console/search";

const WANTED: Wanted = { text: "loss", isRegex: false, levels: [], workers: [], withoutBars: false };
const soon = (): Promise<void> => new Promise((done) => setTimeout(done));

function answering(parts: (Hits | Error)[]): { ask: (...all: unknown[]) => Promise<Hits>; asked: unknown[] } {
  const asked: unknown[] = [];
  async function ask(_task: unknown, _wanted: unknown, after: unknown): Promise<Hits> {
    asked.push(after);
    const part = parts.shift() ?? new Error("asked too often");
    if (part instanceof Error) throw part;
    return part;
  }
  return { ask, asked };
}

test("a search asks part by part until the end, and goes on there when lines came", async () => {
  const { ask, asked } = answering([
    { lines: [1, 5], end: 10, last: "9.1", ended: false },
    { lines: [12], end: 20, last: "19.1", ended: true },
    { lines: [25], end: 30, last: "29.1", ended: true },
  ]);
  const search = new Search("t", WANTED, () => undefined, ask);
  await soon();
  assert.deepEqual([search.numbers, search.end, search.done], [[1, 5, 12], 20, true]);
  search.more();
  await soon();
  assert.deepEqual([search.numbers, search.end], [[1, 5, 12, 25], 30]);
  assert.deepEqual(asked, [null, "9.1", "19.1"]);
});

test("hits are found by their lines", async () => {
  const { ask } = answering([{ lines: [1, 5, 12], end: 20, last: "19.1", ended: true }]);
  const search = new Search("t", WANTED, () => undefined, ask);
  await soon();
  assert.deepEqual(
    [0, 1, 4, 5, 12, 99].map((line) => search.placeAfter(line)),
    [0, 1, 1, 2, 3, 3],
  );
  assert.ok(search.has(5));
  assert.ok(!search.has(6));
});

test("an error ends the search, and a stopped one says nothing more", async () => {
  const { ask } = answering([new Error("regex: missing )")]);
  const search = new Search("t", WANTED, () => undefined, ask);
  await soon();
  assert.equal(search.error?.message, "regex: missing )");
  let told = 0;
  const stopped = new Search(
    "t",
    WANTED,
    () => told++,
    answering([{ lines: [], end: 1, last: null, ended: true }]).ask,
  );
  stopped.stop();
  await soon();
  assert.equal(told, 0);
});
