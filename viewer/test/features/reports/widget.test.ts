import assert from "node:assert/strict";
import { test } from "node:test";

import { widgetOf } from "../../../src/features/reports/widget";

test("the frames of ClearML's reports say what they show", () => {
  const src =
    "https://app.example/widgets/?type=plot&tasks=a,b&tasks=b&metrics=loss%20x&metrics=y&variants=v&company=c";
  assert.deepEqual(widgetOf(src), {
    type: "plot",
    tasks: ["a", "b"],
    models: false,
    metrics: ["loss x", "y"],
    variants: ["v"],
  });
  assert.equal(widgetOf("/widgets/?type=sample&objectType=model&objects=m")?.models, true);
});

test("other frames are none of ours", () => {
  for (const src of [
    "https://evil.example/",
    "/widgets/?type=evil",
    "/widgets?x",
    "javascript:alert(1)//widgets/?type=plot",
    "",
  ]) {
    assert.equal(widgetOf(src)?.tasks.length || null, null, src);
  }
});
