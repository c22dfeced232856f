import assert from "node:assert/strict";
import { test } from "node:test";

import { pauseAfter, pauseAfterDoubts } from "../../src/api/pauses";

test("a lost server is looked for soon, and then less often, but every five seconds", () => {
  assert.deepEqual(
    [0, 1, 2, 3, 1000].map((attempts) => pauseAfter(attempts, 1)),
    [1000, 2000, 4000, 5000, 5000],
  );
});

test("pages come back at different times", () => {
  assert.deepEqual(
    [0, 0.5, 1].map((chance) => pauseAfter(2, chance)),
    [3000, 3500, 4000],
  );
});

test("a question that something always stops is asked less and less often", () => {
  assert.deepEqual([0, 1, 2].map(pauseAfterDoubts), [1000, 4000, 16_000]);
  assert.equal(pauseAfterDoubts(9), pauseAfterDoubts(8));
});
