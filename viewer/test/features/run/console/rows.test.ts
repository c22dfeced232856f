import assert from "node:assert/strict";
import { test } from "node:test";

import { PLAIN } from "../../../../src/features/run/console/ansi";
import { Message, type Span } from "../../../../src/features/run/console/rows";

const ESC = "\x1b";

function message(text: string): Message {
  return new Message(text, PLAIN);
}

/** The texts of all rows. */
function rows(text: string, columns: number): string[] {
  const broken = message(text);
  return Array.from({ length: broken.rows(columns) }, (_, row) =>
    broken
      .row(row, columns, [])
      .map((part) => part.text)
      .join(""),
  );
}

test("a message is broken as a terminal breaks it", () => {
  assert.deepEqual(rows("", 10), [""]);
  assert.deepEqual(rows("0123456789", 10), ["0123456789"]);
  assert.deepEqual(rows("0123456789a", 10), ["0123456789", "a"]);
  assert.deepEqual(rows("a\n\nb", 10), ["a", "", "b"]);
  assert.deepEqual(rows("a\n", 10), ["a", ""]);
  assert.deepEqual(rows(`${ESC}[31m${"a".repeat(10)}${ESC}[0m`, 10), ["a".repeat(10)]);
  assert.deepEqual(rows("日".repeat(6), 10), ["日".repeat(5), "日"]);
  assert.deepEqual(rows(`a${"日".repeat(5)}`, 10), [`a${"日".repeat(4)}`, "日"]);
  assert.equal(message("é".repeat(10).normalize("NFD")).rows(10), 1);
  assert.deepEqual(rows("a\tb\tc", 10), ["a\tb", "\tc"]);
  assert.deepEqual(rows("😀".repeat(6), 10), ["😀".repeat(5), "😀"]);
});

test("a row keeps its colours, and what was found in it is marked, also over the end of a row", () => {
  const coloured = message(`ab${ESC}[31mcdef\ngh${ESC}[0mi`);
  const found: Span[] = [
    [1, 3],
    [5, 8],
  ]; // "bc", and "f", the break and "g"
  const marked = (row: number, columns: number): [string, unknown, boolean][] =>
    coloured.row(row, columns, found).map((part) => [part.text, part.style.fore, part.found]);
  assert.deepEqual(marked(0, 4), [
    ["a", null, false],
    ["b", null, true],
    ["c", 1, true],
    ["d", 1, false],
  ]);
  assert.deepEqual(marked(1, 4), [
    ["e", 1, false],
    ["f", 1, true],
  ]);
  assert.deepEqual(marked(2, 4), [
    ["g", 1, true],
    ["h", 1, false],
    ["i", null, false],
  ]);
  assert.deepEqual(
    coloured.parts(0, 10, []).map((part) => part.text),
    ["ab", "cdef\ngh", "i"],
  );
});

test("a place in a message leads to its row", () => {
  const broken = message(`${"x".repeat(25)}\n\nend`);
  assert.deepEqual(
    [0, 9, 10, 25, 26, 27, 29].map((place) => broken.rowAt(place, 10)),
    [0, 0, 1, 2, 3, 4, 4],
  );
});

test("a message of 200,000 rows is broken once, and each of its rows is read alone", () => {
  const long = message("x\n".repeat(200_000) + "end");
  assert.equal(long.rows(10), 200_001);
  assert.deepEqual(
    long.row(200_000, 10, []).map((part) => part.text),
    ["end"],
  );
  for (let row = 0; row < 200_000; row += 997) assert.equal(long.row(row, 10, [])[0]?.text, "x");
});
