import assert from "node:assert/strict";
import { test } from "node:test";

import { looks, PALETTE } from "../../src/chart/line";
import { grouped, type OneAsk } from "../../src/chart/loader";
import { chartsOf, sectionsOf } from "../../src/chart/sections";
import { SMOOTHINGS, smoothingOf, textOfSmoothing } from "../../src/chart/smoothing";
import { clock, logSplits, logTicks, tick } from "../../src/chart/ticks";
import { finder, parametersOf, type View, viewOf } from "../../src/chart/view";

function back(view: Partial<View>): View {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parametersOf(view))) {
    if (Array.isArray(value)) for (const one of value) query.append(name, String(one));
    else if (value !== null && value !== "" && value !== false) query.set(name, value === true ? "1" : String(value));
  }
  return viewOf(query);
}

test("a view comes back from its address", () => {
  const view: View = {
    axis: { metric: "a/b:%", variant: "ü, &" },
    smooth: "ema:0.9",
    logX: true,
    logY: true,
    trimmed: true,
    range: [1.5, 1700000000000],
    find: "^(loss|acc).*$",
    pins: ["a b", "<x>"],
    at: 1700000000000,
    full: "loss/train",
  };
  assert.deepEqual(back(view), view);
  assert.deepEqual(back({}), viewOf(new URLSearchParams()));
});

test("what is wrong in an address is as if it were not there", () => {
  const view = viewOf(new URLSearchParams("axis=curve:%25E0%25A4%25A/x&smooth=<x>&x=9..1&at=never"));
  assert.deepEqual([view.axis, view.smooth, view.range, view.at], ["iter", "", null, null]);
});

test("an expression that is none is looked for as it is", () => {
  assert.ok(finder("LOSS$")("train/loss"));
  assert.ok(finder("(a")("x(ab"));
  assert.ok(!finder("(a")("xab"));
});

test("a metric's chart has all variants if its name is looked for, else those that are", () => {
  const metrics = { loss: ["train", "val"], lr: ["group 10", "group 2"] };
  assert.deepEqual(
    chartsOf(metrics, finder("loss")).map(({ variants }) => variants),
    [null],
  );
  assert.deepEqual(
    chartsOf(metrics, finder("/val")).map(({ variants }) => variants),
    [["val"]],
  );
  const [, capped] = chartsOf(metrics, finder(""), new Map([["lr", 1]]));
  assert.deepEqual([capped!.variants, capped!.of], [["group 2"], 2]);
});

test("pinned charts come first in their order, those without a prefix last", () => {
  const metrics = Object.fromEntries(["lr", "val/loss", "train/loss", "train/acc"].map((name) => [name, ["x"]]));
  const sections = sectionsOf(
    chartsOf(metrics, () => true),
    ["val/loss", "gone", "lr"],
  );
  const names = sections.map(({ title, charts }) => [title, charts.map(({ id }) => id)]);
  assert.deepEqual(names, [
    ["Pinned", ["val/loss", "lr"]],
    ["train", ["train/acc", "train/loss"]],
  ]);
});

test("a name keeps its colour, and ten names have ten", () => {
  const names = Array.from({ length: 10 }, (_, number) => `run ${number}`);
  const found = looks(names);
  assert.equal(new Set([...found.values()].map(({ colour }) => colour)).size, PALETTE.length);
  assert.deepEqual(looks(["run 0"]).get("run 0"), found.get("run 0"));
  assert.ok(looks([...names, "one more"]).get("one more")!.dashed);
});

test("a few names have colours that are unlike each other", () => {
  const unlike = new Set(PALETTE.slice(0, 5));
  for (let number = 0; number < 50; number++) {
    const few = looks(["sgd", "adamw", "lamb", "lion", `number ${number}`].map((name) => `${name} ${number}`));
    assert.deepEqual(new Set([...few.values()].map(({ colour }) => colour)), unlike);
  }
});

test("questions that differ in nothing but the metric are one request, up to a length", () => {
  const ask = (metric: string, points = 100): { ask: OneAsk } => ({
    ask: { metric, points, variants: null, axis: "iter", smooth: "", range: null, columns: ["mean"] },
  });
  const groups = grouped([ask("a"), ask("b"), ask("c", 200), ask("x".repeat(5000)), ask("d")]);
  assert.deepEqual(
    groups.map((group) => group.length),
    [2, 1, 1, 1],
  );
});

test("each step of a slider has an amount, and comes back", () => {
  for (const kind of SMOOTHINGS) {
    for (let step = 0; kind.slider && step <= kind.slider.steps; step++) {
      const amount = kind.slider.ofStep(step);
      assert.equal(kind.slider.toStep(amount), step);
      assert.deepEqual(smoothingOf(textOfSmoothing(kind, amount)), { kind, amount });
    }
  }
});

test("numbers at log axes are round, few, and tell neighbours apart", () => {
  const marks: readonly (readonly [number, number, number, string[]])[] = [
    [0.03, 4, 8, ["0.05", "0.1", "0.2", "0.5", "1", "2"]],
    [0.0098, 1.5e5, 5, ["0.01", "1", "100", "10k"]],
    [1e-14, 4e301, 4, ["1", "1e80", "1e160", "1e240"]],
    [3.2, 3.41, 4, ["3.2", "3.3", "3.4"]],
    [1e9, 1e9 + 0.2, 4, ["1000000000.0", "1000000000.1", "1000000000.2"]],
  ];
  for (const [least, greatest, most, texts] of marks) {
    assert.deepEqual(logTicks(logSplits(least, greatest, most)), texts);
  }
});

test("no axis has numbers without end", () => {
  for (let low = -300; low < 308; low++) {
    for (const digits of [1, 9.51, 9.99]) {
      for (const wide of [1.0001, 3, 1e3, 1e5, 1e30]) {
        const least = digits * 10 ** low;
        const greatest = Math.min(least * wide, Number.MAX_VALUE);
        if (!(greatest > least)) continue;
        const splits = logSplits(least, greatest, 5);
        assert.ok(
          splits.length <= 12 && splits.every((split) => split >= least && split <= greatest),
          `${least} ${splits.join(" ")}`,
        );
      }
    }
  }
});

test("numbers at axes are short, and tell neighbours apart", () => {
  const marks: readonly (readonly [number, number, string])[] = [
    [300_000, 100_000, "300k"],
    [123_456, 1, "123,456"],
    [1_250_000, 250_000, "1.25M"],
    [0.25, 0.25, "0.25"],
    [0.00002, 0.00001, "2e-5"],
    [-2, 1, "-2"],
  ];
  for (const [value, step, text] of marks) assert.equal(tick(value, step), text);
  assert.deepEqual([clock(1500, 500), clock(3_900_000, 60_000), clock(61_000, 1000)], ["1.5 s", "1:05", "0:01:01"]);
});
