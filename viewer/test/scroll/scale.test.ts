import assert from "node:assert/strict";
import { test } from "node:test";

import { HIGHEST, lastTop, moved, scaleOf, scrolledOf, settled, topOf } from "../../src/scroll/scale";

const SCALES = [scaleOf(0, 18, 800), scaleOf(3, 18, 800), scaleOf(1000, 18, 800), scaleOf(10_000_000, 18, 800)];

test("a short list is as high as its rows, and a pixel is a pixel", () => {
  const scale = scaleOf(1000, 18, 800);
  assert.equal(scale.height, 18_000);
  assert.equal(topOf(scale, 1234), 1234);
  assert.equal(scrolledOf(scale, 1234), 1234);
  assert.deepEqual(moved(scale, { scrolled: 0, top: 0 }, 1), { scrolled: 1, top: 1 });
});

test("no list is higher than browsers can make an element", () => {
  assert.equal(scaleOf(1e9, 18, 800).height, HIGHEST);
});

test("both ends are reached, and going there and back leads to the same place", () => {
  for (const scale of SCALES) {
    const last = lastTop(scale);
    assert.equal(topOf(scale, 0), 0);
    assert.equal(topOf(scale, 1e12), last);
    assert.equal(scrolledOf(scale, last), Math.max(0, scale.height - scale.view));
    for (let part = 0; part <= 1; part += 0.001) {
      const top = last * part;
      assert.ok(Math.abs(topOf(scale, scrolledOf(scale, top)) - top) < 1e-3, `${top}`);
    }
  }
});

test("the further the bar, the further the rows", () => {
  const scale = scaleOf(10_000_000, 18, 800);
  let before = -1;
  for (let scrolled = 0; scrolled <= scale.height - scale.view; scrolled += 997) {
    const top = topOf(scale, scrolled);
    assert.ok(top > before);
    before = top;
  }
});

test("the wheel moves by pixels, the bar to a part of the list", () => {
  const scale = scaleOf(10_000_000, 18, 800);
  const middle = settled(scale, lastTop(scale) / 2);
  const wheel = moved(scale, middle, middle.scrolled + 90);
  assert.equal(wheel.top, middle.top + 90);
  const bar = moved(scale, middle, middle.scrolled + 1_000_000);
  assert.equal(bar.top, topOf(scale, middle.scrolled + 1_000_000));
  assert.ok(bar.top > middle.top + 20_000_000);
});

test("small moves alone reach the first and the last row", () => {
  const scale = scaleOf(10_000_000, 18, 800);
  for (const [from, step] of [
    [60_000, -100],
    [lastTop(scale) - 60_000, 100],
  ] as const) {
    let now = settled(scale, from);
    for (let turn = 0; turn < 601; turn++) {
      const to = Math.min(Math.max(now.scrolled + step, 0), scale.height - scale.view);
      const next = moved(scale, now, to);
      assert.ok(Math.abs(next.top - now.top) <= 100.001);
      now = settled(scale, next.top);
    }
    assert.equal(now.top, step < 0 ? 0 : lastTop(scale));
  }
});
