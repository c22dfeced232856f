import assert from "node:assert/strict";
import { test } from "node:test";

import { LEFT, leftOf } from "../../src/chart/options";

test("charts whose numbers fit begin at the same place", () => {
  assert.equal(leftOf(null), LEFT);
  assert.equal(leftOf(["0", "0.25", "300k"]), LEFT);
});

test("long numbers get the room that they need", () => {
  assert.equal(leftOf(["1000000000.15", "1000000000.20"]), 95);
});
