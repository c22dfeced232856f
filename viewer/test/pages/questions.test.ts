/** Questions that take long: they are answered, whatever else changes meanwhile. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { open } from "../harness/open";
import { RUN, serverOf } from "../harness/run";

test("a question under way is answered though more changes come", async (t) => {
  const { server, run } = serverOf();
  const metrics = ["first"];
  server.on({
    "events.get_multi_task_metrics": () => ({ metrics: metrics.map((metric) => ({ metric, variants: ["v"] })) }),
    "events.get_plot_sample": ({ body }) => ({
      events: [{ metric: body["metric"], variant: "v", iter: 1, plot_str: "said" }],
      min_iteration: 1,
      max_iteration: 1,
      scroll_id: "s",
    }),
  });
  const page = open(t, `${RUN}/plots`, server);
  const panel = page.in("tabpanel");
  await panel.in("heading", "first").until(() => panel.text().includes("first"));
  await page.live();
  const came = (metric: string): void => {
    metrics.push(metric);
    server.tell("samples", { task: "t", series: [[metric, "v", 1, 1, "plot"]] });
  };
  const held = server.hold("events.get_multi_task_metrics");
  came("second");
  const answer = await page.arrived(held);
  answer.answer();
  came("third");
  run.name = "renamed";
  server.tell("status", { task: "t", name: "renamed", project: "p", status: "created" });
  await page.get("heading", "renamed");
  await panel.has("second");
  (await page.arrived(held, 2)).answer();
  await panel.has("third");
  assert.ok(held.every((one) => !one.isGivenUp));
});
