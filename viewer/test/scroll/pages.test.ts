import assert from "node:assert/strict";
import { test } from "node:test";

import { Pages } from "../../src/scroll/pages";

interface Question {
  first: number;
  count: number;
  signal: AbortSignal;
  answer: (rows: string[]) => void;
  fail: (error: Error) => void;
}

function list(most = 3): { pages: Pages<string>; questions: Question[]; said: (Error | undefined)[] } {
  const questions: Question[] = [];
  const said: (Error | undefined)[] = [];
  const ask = (first: number, count: number, signal: AbortSignal) =>
    new Promise<string[]>((answer, fail) => questions.push({ first, count, signal, answer, fail }));
  return { pages: new Pages({ ask, changed: (error) => said.push(error), size: 10, most }), questions, said };
}

const rows = (first: number, word = "row"): string[] => Array.from({ length: 10 }, (_, n) => `${word} ${first + n}`);
const soon = (): Promise<void> => new Promise((done) => setTimeout(done));

test("the pages that are wanted are asked for once, and their rows are there when they came", async () => {
  const { pages, questions, said } = list();
  pages.want(5, 15);
  pages.want(6, 16);
  assert.deepEqual(
    questions.map(({ first, count }) => [first, count]),
    [
      [0, 10],
      [10, 10],
    ],
  );
  assert.equal(pages.get(12), undefined);
  questions[1]!.answer(rows(10));
  await soon();
  assert.equal(pages.get(12), "row 12");
  assert.equal(pages.get(2), undefined);
  assert.deepEqual(said, [undefined]);
});

test("a question is given up when its rows are out of sight, and its answer is not kept", async () => {
  const { pages, questions, said } = list();
  pages.want(0, 10);
  pages.want(500, 510);
  assert.ok(questions[0]!.signal.aborted);
  assert.ok(!questions[1]!.signal.aborted);
  questions[0]!.answer(rows(0));
  await soon();
  assert.equal(pages.get(0), undefined);
  assert.deepEqual(said, []);
});

test("the pages that were wanted longest ago are forgotten", async () => {
  const { pages, questions } = list(3);
  for (const first of [0, 10, 20]) {
    pages.want(first, first + 10);
    questions.at(-1)!.answer(rows(first));
    await soon();
  }
  pages.want(0, 10); // seen again
  pages.want(30, 40);
  questions.at(-1)!.answer(rows(30));
  await soon();
  assert.deepEqual(
    [0, 10, 20, 30].map((row) => pages.get(row)),
    ["row 0", undefined, "row 20", "row 30"],
  );
});

test("stale rows are shown until new ones come", async () => {
  const { pages, questions } = list();
  pages.want(0, 20);
  questions[0]!.answer(rows(0));
  questions[1]!.answer(rows(10));
  await soon();
  pages.stale(15);
  pages.want(0, 20);
  assert.equal(questions.length, 3);
  assert.equal(pages.get(15), "row 15");
  questions[2]!.answer(rows(10, "new"));
  await soon();
  assert.equal(pages.get(15), "new 15");
});

test("an error is told, and the rows are asked for again when they are wanted again", async () => {
  const { pages, questions, said } = list();
  pages.want(0, 10);
  questions[0]!.fail(new Error("no network"));
  await soon();
  assert.equal(said[0]?.message, "no network");
  pages.want(0, 10);
  assert.equal(questions.length, 2);
});

test("rows that have other numbers are shown there, and asked for anew", async () => {
  const { pages, questions } = list();
  pages.want(0, 20);
  questions[0]!.answer(rows(0));
  questions[1]!.answer(rows(10));
  await soon();
  pages.move(3);
  assert.deepEqual(
    [pages.get(2), pages.get(3), pages.get(15), pages.get(22)],
    [undefined, "row 0", "row 12", "row 19"],
  );
  pages.want(0, 10);
  questions.at(-1)!.answer(rows(0, "new"));
  await soon();
  pages.move(-8);
  assert.deepEqual([pages.get(0), pages.get(1), pages.get(2)], ["new 8", "new 9", "row 7"]);
});
