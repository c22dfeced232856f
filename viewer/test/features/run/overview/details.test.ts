import assert from "node:assert/strict";
import { test } from "node:test";

import { changesOf, metricsOf, packagesOf, sectionsOf } from "../../../../src/features/run/overview/details";

test("sections: Args first, parameters by name, numbers by size", () => {
  const one = (name: string): object => ({ name, value: "1" });
  const found = { Zoo: { a: one("a") }, Args: { "layer 10": one("layer 10"), "layer 9": one("layer 9") }, Empty: {} };
  assert.deepEqual(
    sectionsOf(found as never).map(({ section, parameters }) => [section, ...parameters.map(({ name }) => name)]),
    [
      ["Args", "layer 9", "layer 10"],
      ["Zoo", "a"],
    ],
  );
});

test("metrics: those of machines are last", () => {
  const found = {
    x: { a: { metric: ":monitor:gpu", variant: "u" } },
    y: { b: { metric: "loss", variant: "b" }, c: { metric: "loss", variant: "a" } },
  };
  assert.deepEqual(
    metricsOf(found).map(({ metric, variant }) => `${metric}/${variant}`),
    ["loss/a", "loss/b", ":monitor:gpu/u"],
  );
});

test("packages of a list", () => {
  const list = "# Python 3.11\n\ntorch == 2.4.0\nnumpy>=1.26\nplain\n-e git+https://x/y\ntool @ https://z";
  assert.deepEqual(
    packagesOf({ pip: list, conda: ["mkl=1"], odd: 5 }).map(
      ({ manager, name, version }) => `${manager}|${name}|${version}`,
    ),
    ["pip|torch|2.4.0", "pip|numpy|1.26", "pip|plain|", "pip|-e|git+https://x/y", "pip|tool|https://z", "conda|mkl|1"],
  );
});

test("only what was changed is sent", () => {
  const before = [
    { section: "Args", name: "lr", value: "1", type: "float" },
    { section: "Args", name: "seed", value: "7" },
    { section: "Args", name: "old", value: "x" },
  ];
  const after = [
    { section: "Args", name: "lr", value: "2", type: "float" },
    before[1]!,
    { section: "New", name: "a", value: "" },
    { section: "New", name: " ", value: "no name" },
  ];
  assert.deepEqual(changesOf(before, after), {
    set: [after[0], after[2]],
    remove: [{ section: "Args", name: "old" }],
  });
});
