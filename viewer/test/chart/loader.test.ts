import assert from "node:assert/strict";
import { mock, test } from "node:test";

import type { Curve } from "../../src/api/columns";
import { Loader, type OneAsk } from "../../src/chart/loader";
import type { Ask, ChartSource } from "../../src/chart/source";

const never = new AbortController().signal;

function askOf(metric: string): OneAsk {
  return { metric, variants: null, axis: "iter", points: 300, smooth: "", range: null, columns: ["mean"] };
}

/** A source that notes which metrics it is asked for, and answers when `answer` is called. */
function noting(): { source: ChartSource; asked: (readonly string[])[]; answer: () => Promise<void> } {
  const asked: (readonly string[])[] = [];
  const waiting: (() => void)[] = [];
  const curves = ({ metrics }: Ask): Promise<readonly Curve[]> => {
    asked.push(metrics);
    return new Promise((resolve) => waiting.push(() => resolve([])));
  };
  const answer = async (): Promise<void> => {
    for (const one of waiting.splice(0)) one();
    await new Promise((resolve) => setTimeout(resolve));
  };
  return { source: { tasks: [], curves, file: () => "", looks: () => [] }, asked, answer };
}

test("questions of many charts are one request", async () => {
  const { source, asked, answer } = noting();
  const loader = new Loader(source);
  for (const metric of ["a", "b", "c"]) void loader.load(askOf(metric), never);
  await answer();
  assert.deepEqual(asked, [["a", "b", "c"]]);
});

test("what somebody waits for is asked first, alone", async () => {
  const { source, asked, answer } = noting();
  const loader = new Loader(source);
  for (const metric of ["a", "b", "c"]) void loader.load(askOf(metric), never, metric === "b");
  await answer();
  assert.deepEqual(asked, [["b"]]);
  await answer();
  assert.deepEqual(asked, [["b"], ["a", "c"]]);
});

test("others do not wait longer than a moment for an answer that is slow", async () => {
  const { source, asked } = noting();
  const loader = new Loader(source);
  mock.timers.enable({ apis: ["setTimeout"] });
  try {
    void loader.load(askOf("first"), never, true);
    void loader.load(askOf("other"), never);
    mock.timers.tick(0);
    assert.deepEqual(asked, [["first"]]);
    mock.timers.tick(1000);
    await Promise.resolve(); // the race is over
    await Promise.resolve();
    assert.deepEqual(asked, [["first"], ["other"]]);
  } finally {
    mock.timers.reset();
  }
});

test("what nobody waits for any more is not asked when its turn comes", async () => {
  const { source, asked, answer } = noting();
  const loader = new Loader(source);
  const stop = new AbortController();
  void loader.load(askOf("first"), never, true);
  void loader.load(askOf("left"), stop.signal);
  await answer();
  stop.abort();
  await answer();
  assert.deepEqual(asked, [["first"]]);
});
