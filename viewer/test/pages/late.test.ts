/** Answers that come late: after a dialog was closed, a tab was left, or somebody has begun to type something else. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { open } from "../harness/open";
import { RUN, serverOf } from "../harness/run";

test("a step to another plot changes no address of another tab", async (t) => {
  const { server } = serverOf();
  const plot = (iter: number) => ({ metric: "table", variant: "v", iter, plot_str: '{"data":[{"type":"table","header":{"values":["a"]},"cells":{"values":[[1]]}}]}' });
  const at = (iter: number) => ({ events: [plot(iter)], min_iteration: 1, max_iteration: 2, scroll_id: "s" });
  server.on({
    "events.get_multi_task_metrics": () => ({ metrics: [{ metric: "table", variants: ["v"] }] }),
    "events.get_plot_sample": () => at(2),
    "events.next_plot_sample": () => at(1),
  });
  const page = open(t, `${RUN}/plots`, server);
  const held = server.hold("events.next_plot_sample");
  await page.click("button", "Iteration before");
  const answer = await page.arrived(held);
  await page.click("tab", "Overview");
  answer.answer();
  await page.settle();
  await page.pass(1000);
  assert.equal(page.address, `${RUN}/overview`);
});
