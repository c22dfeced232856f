import assert from "node:assert/strict";
import { test } from "node:test";

import { type Binding, type Group, meaningOf } from "../../src/hooks/keys";

function binding(does: string, ...keys: string[]): Binding {
  return { keys, does, run: () => undefined };
}

const PAGE: Group = {
  title: "All pages",
  inDialog: false,
  bindings: [binding("projects", "g p"), binding("help", "?")],
};
const TABLE: Group = { title: "Table", inDialog: false, bindings: [binding("next", "j"), binding("own help", "?")] };
const PICTURE: Group = { title: "Picture", inDialog: true, bindings: [binding("next picture", "ArrowRight", "l")] };
const ALL = [PAGE, TABLE, PICTURE];

function meant(before: string, key: string, dialogIsOpen = false): string | null {
  const meaning = meaningOf(ALL, before, key, dialogIsOpen);
  return meaning === null || meaning === "begins" ? meaning : `${meaning.binding.does} by ${meaning.key}`;
}

test("a key does what is registered for it", () => {
  assert.equal(meant("", "j"), "next by j");
  assert.equal(meant("", "l"), "next picture by l");
  assert.equal(meant("", "x"), null);
});

test("two keys, one after the other", () => {
  assert.equal(meant("", "g"), "begins");
  assert.equal(meant("g", "p"), "projects by g p");
  assert.equal(meant("g", "j"), null);
});

test("who registers a key last has it", () => assert.equal(meant("", "?"), "own help by ?"));

test("behind a dialog, the keys of a page do nothing", () => {
  assert.equal(meant("", "j", true), null);
  assert.equal(meant("", "g", true), null);
  assert.equal(meant("", "ArrowRight", true), "next picture by ArrowRight");
});
