import assert from "node:assert/strict";
import { test } from "node:test";

import { parsedFigure } from "../../src/frame/plot";
import { lineExpressionOf, nameExpressionOf } from "../../src/lib/expressions";

for (const text of [
  "loss",
  "loss.*(train|val)",
  "^val_[a-z]+/top[0-9]{1,2}$",
  "a|b|c+",
  "(?:x|y)z*",
  "[(+]+\\)*",
  "\\(a+\\)b?",
  "x{2,}?",
]) {
  test(`${text} is taken`, () => assert.ok(nameExpressionOf(text)));
}

const COSTLY = [
  "(a+)+$",
  "(a|aa)+$",
  "((a|b))*",
  "(a*){20}",
  "(?:a?){30}",
  "(?<n>a+)*",
  "a*a*a*a*$",
  "a?".repeat(30),
  "(x(y+)z)*",
  "(a|aa)".repeat(30),
];
for (const text of COSTLY)
  test(`${text} is refused`, () => assert.equal(nameExpressionOf(text) ?? lineExpressionOf(text), null));

test("an expression for lines is run over the fewer characters, the more of it varies", () => {
  const slices = ["loss", "loss.*", "a*a*a?b", "(train|val|test|eval).*loss.*acc"].map(
    (text) => lineExpressionOf(text)?.slice ?? 0,
  );
  assert.deepEqual(
    slices,
    [...slices].sort((one, other) => other - one),
  );
  assert.ok(slices.every((slice) => slice >= 64));
  assert.equal(lineExpressionOf("a*a*a?a?a?a?a?a?b"), null);
});

test("what is no expression is none", () =>
  assert.equal(nameExpressionOf("loss$|(") ?? lineExpressionOf("loss$|("), null));

test("a text that is no figure is read in time that grows with its length", () => {
  for (const text of ['"' + '\\"'.repeat(400_000), '"' + '\\"'.repeat(400_000) + "\\", "NaN" + '"\\'.repeat(400_000)]) {
    assert.equal(parsedFigure(text + " NaN"), undefined);
  }
});
