import assert from "node:assert/strict";
import { test } from "node:test";

import { type Place, partOf, pathOf, placeOf, TABS } from "../src/routes";

const RUN = { page: "run", project: "p", task: "t" } as const;

const ADDRESSES: readonly (readonly [string, Place])[] = [
  ["/", { page: "projects" }],
  ["/projects/*/experiments/t/output/log", { ...RUN, project: "*", tab: "console" }],
  ["/projects/p/tasks/t/output/log", { ...RUN, tab: "console" }],
  ["/projects/p/tasks/t/execution", { ...RUN, tab: "overview" }],
  ["/projects/p/experiments/t/output/metrics/scalar", { ...RUN, tab: "scalars" }],
  ["/projects/p/experiments/t/info-output/metrics/plots", { ...RUN, tab: "plots" }],
  ["/projects/p/tasks/t/hyper-params/hyper-param/Args", { ...RUN, tab: "overview" }],
  ["/projects/p/models/m/general", { page: "model", project: "p", model: "m" }],
  ["/models", { page: "models", project: "*" }],
  ["/models/m", { page: "model", project: "*", model: "m" }],
  ["/projects/*/models", { page: "models", project: "*" }],
  ["/datasets/simple/p/experiments/t", { ...RUN, tab: "overview" }],
  ["/pipelines/p/experiments/t", { ...RUN, tab: "overview" }],
  ["/reports/p/r", { page: "report", report: "r" }],
  ["/projects/a%2Fb/tasks/%E0%A4%A", { page: "run", project: "a/b", task: "%E0%A4%A", tab: "overview" }],
  ["/projects/p/compare", { page: "compare", project: "p" }],
  ["/projects/p/compare-experiments;ids=a,b", { page: "compare", project: "p", given: "a,b" }],
  ["/projects/*/compare-tasks;ids=a,b/scalars/graph", { page: "compare", project: "*", given: "a,b/scalars/graph" }],
  ["/projects/p/compare-nothing", { page: "unknown" }],
  ["/settings", { page: "settings" }],
  ["/settings/usage", { page: "usage" }],
  ["/settings/audit", { page: "audit" }],
  ["/settings/workspace-configuration", { page: "settings" }],
  ["/settings/nothing", { page: "unknown" }],
  ["/nothing", { page: "unknown" }],
];

for (const [address, place] of ADDRESSES) {
  test(`${address} is understood`, () => assert.deepEqual(placeOf(address), place));
}

test("the address of a place leads back to it", () => {
  const names = ["p", "*", "a/b", "ü ö", "%41", "?#&"];
  for (const project of names) {
    for (const tab of TABS) {
      const place: Place = { page: "run", project, task: "t", tab };
      assert.deepEqual(placeOf(pathOf(place)), place);
    }
    for (const page of ["runs", "models"] as const) {
      assert.deepEqual(placeOf(pathOf({ page, project })), { page, project });
    }
  }
});

test("a page belongs to a part of the navigation, or to none", () => {
  const parts = {
    "/": "projects",
    "/projects/p/tasks/t": "projects",
    "/compare": "projects",
    "/projects/p/models": "models",
  };
  for (const [address, part] of Object.entries({
    ...parts,
    "/settings/usage": "settings",
    "/settings/audit": "settings",
    "/reports/r": "reports",
    "/search": null,
  })) {
    assert.equal(partOf(placeOf(address)), part, address);
  }
});
