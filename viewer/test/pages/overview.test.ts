/** What a run is: the tab Overview, and what is said where there is no run, report or page. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { open } from "../harness/open";
import { PARENT, parameters, RUN, serverOf } from "../harness/run";

const OVERVIEW = `${RUN}/overview`;

test("parameters are searched", async (t) => {
  const page = open(t, OVERVIEW, serverOf({ hyperparams: parameters({ lr: "1", batch_size: "64" }) }).server);
  const region = page.in("region", "Parameters");
  await region.in("searchbox").fill("BATCH");
  assert.deepEqual(region.in("rowheader").texts(), ["batch_size"]);
});

test("a file in an object store is explained", async (t) => {
  const artifact = { key: "index", type: "custom", mode: "output", uri: "s3://data/index.parquet" };
  const page = open(t, OVERVIEW, serverOf({ execution: { artifacts: [artifact] } }).server);
  await page.in("region", "Artifacts").has("s3://data/index.parquet");
  assert.match(
    page.document.querySelector("[title^='It lies in Amazon S3']")!.textContent!,
    /s3:\/\/data\/index.parquet/,
  );
});

test("a diff of megabytes is folded and bounded", async (t) => {
  const lines = Array.from({ length: 40_000 }, (_, n) => `+line ${n} ${"x".repeat(60)}\n`).join("");
  const page = open(t, OVERVIEW, serverOf({ script: { diff: `diff --git a/x b/x\n@@ -1 +1 @@\n${lines}` } }).server);
  const region = page.in("region", "Changes that are not committed");
  await region.element();
  const drawn = (kind: string): number => region.all()[0]!.querySelectorAll(kind).length;
  assert.equal(drawn("[data-kind]"), 16);
  await region.in("button", "Show all 40,002 lines").click();
  assert.equal(drawn("[data-kind=added]"), 3998);
  await region.has("The first 4,000 of 40,002 lines");
});

test("the metrics follow a run", async (t) => {
  const metrics = (value: number): object => ({
    a: { b: { metric: "loss", variant: "train", value, min_value: value, max_value: value } },
  });
  const { server, run } = serverOf({ status: "in_progress", last_metrics: metrics(0.75) });
  const page = open(t, OVERVIEW, server);
  const region = page.in("region", "Last metrics");
  await region.has("0.75");
  await page.live();
  run["last_metrics"] = metrics(0.25);
  server.tell("scalars", { task: "t", series: [["loss", "train", 1, 2]] });
  await region.has("0.25");
});

test("parent and children lead to each other", async (t) => {
  const { server } = serverOf(PARENT);
  server.on({
    "tasks.get_all": ({ body }) => ({
      tasks:
        body["parent"] === "parent" || body["parent"]?.[0] === "parent"
          ? [{ id: "t", name: "mine", status: "created", project: "p" }]
          : [],
    }),
  });
  const page = open(t, OVERVIEW, server);
  await page.click("link", "the parent");
  await page.get("heading", "the parent");
  await page.in("region", "Children").in("link", "mine").click();
  await page.get("heading", "mine");
});

test("a run that there is not is said, and leads on", async (t) => {
  const page = open(t, "/projects/*/tasks/0815/scalars", serverOf().server);
  await page.get("heading", "There is no run 0815");
  assert.equal((await page.get("link", "All runs")).getAttribute("href"), "/projects/*");
  assert.equal(page.all("status", "Connection lost").length, 0);
});

for (const [what, endpoint, answer] of [
  ["report", "reports.get_all_ex", { tasks: [] }],
  ["model", "models.get_all_ex", { models: [] }],
] as const) {
  test(`a page of nothing says so and leads on: ${what}`, async (t) => {
    const { server } = serverOf();
    server.on({ [endpoint]: () => answer });
    const page = open(t, `/${what}s/nothing`, server);
    await page.get("heading", `There is no ${what} nothing`);
    await page.get("link", `All ${what}s`);
  });
}

for (const address of ["/nothing", "/settings/nothing", "/projects/p/nothing"]) {
  test(`an address without a page says so: ${address}`, async (t) => {
    await open(t, address, serverOf().server).sees("There is no page at this address");
  });
}

test("a run without plots, or without a log, says so", async (t) => {
  const { server } = serverOf();
  const page = open(t, `${RUN}/plots`, server);
  await page.sees("This run has reported no plots");
});
