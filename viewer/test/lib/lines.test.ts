import assert from "node:assert/strict";
import { test } from "node:test";

import { diffKind, linesOf } from "../../src/lib/lines";

test("the first lines, and how many there are", () => {
  const { lines, count } = linesOf("a\nb\n\nc", "", 3);
  assert.deepEqual(lines, [
    { number: 1, text: "a" },
    { number: 2, text: "b" },
    { number: 3, text: "" },
  ]);
  assert.equal(count, 4);
});

test("a search shows the lines that match, in any case", () => {
  const { lines, matches } = linesOf("Lr: 1\nbatch: 2\nlr_end: 3\nLR", "lr", 2);
  assert.deepEqual(
    lines.map((line) => line.number),
    [1, 3],
  );
  assert.equal(matches, 3);
});

test("a line of megabytes is cut", () => assert.ok(linesOf("x".repeat(3e6), "", 5).lines[0]!.text.length < 3000));

test("lines of a diff", () => {
  const kinds = ["diff --git a/x b/x", "--- a/x", "+++ b/x", "@@ -1 +1 @@", "-old", "+new", " same", ""].map(diffKind);
  assert.deepEqual(kinds, ["file", "file", "file", "place", "removed", "added", "", ""]);
});
