import assert from "node:assert/strict";
import { test } from "node:test";

import { expressionOf, OF_LINES, OF_NAMES } from "../src/parts/expressions";
import { parsedFigure } from "../src/frame/plot";

for (const text of ["loss", "loss.*(train|val)", "^val_[a-z]+/top[0-9]{1,2}$", "a|b|c+", "(?:x|y)z*", "[(+]+\\)*", "\\(a+\\)b?", "x{2,}?"]) {
  test(`${text} is taken`, () => assert.ok(expressionOf(text, "i", OF_NAMES)));
}

const COSTLY = ["(a+)+$", "(a|aa)+$", "((a|b))*", "(a*){20}", "(?:a?){30}", "(?<n>a+)*", "a*a*a*a*$", "a?".repeat(30), "(x(y+)z)*"];
for (const text of COSTLY) test(`${text} is refused`, () => assert.equal(expressionOf(text, "", OF_NAMES), null));

test("what is no expression is none", () => assert.equal(expressionOf("loss$|(", "i", OF_LINES), null));

test("a text that is no figure is read in time that grows with its length", () => {
  for (const text of ['"' + '\\"'.repeat(400_000), '"' + '\\"'.repeat(400_000) + "\\", "NaN" + '"\\'.repeat(400_000)]) {
    assert.equal(parsedFigure(text + " NaN"), undefined);
  }
});
