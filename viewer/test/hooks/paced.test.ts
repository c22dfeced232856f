import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import { paced } from "../../src/hooks/paced";

const page = { hidden: false };
Object.assign(globalThis, { document: page });

/** A clock that stands still, and a paced function that counts its calls. */
function counting(context: TestContext): {
  changed: ReturnType<typeof paced>;
  count: () => number;
  wait: (ms: number) => void;
} {
  context.mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
  page.hidden = false;
  let calls = 0;
  return { changed: paced(() => calls++, 1000), count: () => calls, wait: (ms) => context.mock.timers.tick(ms) };
}

test("many changes at once are one call, and it comes at once", (context) => {
  const { changed, count, wait } = counting(context);
  for (let n = 0; n < 5; n++) changed();
  wait(0);
  assert.equal(count(), 1);
});

test("changes soon after a call are another one when the pause is over", (context) => {
  const { changed, count, wait } = counting(context);
  changed();
  wait(0);
  wait(100);
  changed();
  changed();
  wait(899);
  assert.equal(count(), 1);
  wait(1);
  assert.equal(count(), 2);
  wait(5000);
  assert.equal(count(), 2);
});

test("a hidden page waits until it is seen", (context) => {
  const { changed, count, wait } = counting(context);
  page.hidden = true;
  changed();
  wait(60_000);
  assert.equal(count(), 0);
  page.hidden = false;
  wait(1000);
  assert.equal(count(), 1);
});

test("a call that waits can be forgotten", (context) => {
  const { changed, count, wait } = counting(context);
  changed();
  changed.stop();
  wait(5000);
  assert.equal(count(), 0);
});
