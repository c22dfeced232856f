import assert from "node:assert/strict";
import { test } from "node:test";

import { nextEntry } from "../../src/lib/entries";

const LABELS = ["Clone", "Enqueue", "Edit", "Delete"];

test("arrows go round", () => {
  assert.equal(nextEntry("ArrowDown", -1, LABELS), 0);
  assert.equal(nextEntry("ArrowDown", 3, LABELS), 0);
  assert.equal(nextEntry("ArrowUp", 0, LABELS), 3);
  assert.equal(nextEntry("Home", 2, LABELS), 0);
  assert.equal(nextEntry("End", 0, LABELS), 3);
});

test("a letter goes to the next entry that begins with it", () => {
  assert.equal(nextEntry("e", 0, LABELS), 1);
  assert.equal(nextEntry("e", 1, LABELS), 2);
  assert.equal(nextEntry("E", 2, LABELS), 1);
  assert.equal(nextEntry("x", 0, LABELS), null);
});

test("other keys are left alone", () => {
  assert.equal(nextEntry("Escape", 0, LABELS), null);
  assert.equal(nextEntry(" ", 0, LABELS), null);
  assert.equal(nextEntry("ArrowDown", 0, []), null);
});
