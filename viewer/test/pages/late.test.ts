/** Answers that come late: after a dialog was closed, a tab was left, or somebody has begun to type something else. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import { open } from "../harness/open";
import type { Page } from "../harness/page";
import { choose, PARENT, parameters, RUN, serverOf } from "../harness/run";
import type { FakeServer } from "../harness/server";

const PLOT = '{"data":[{"type":"table","header":{"values":["a"]},"cells":{"values":[[1]]}}]}';

/** The page of a draft with a parameter. */
function draft(t: TestContext): { page: Page; server: FakeServer } {
  const { server } = serverOf({ hyperparams: parameters({ lr: "1" }) });
  return { page: open(t, `${RUN}/overview`, server), server };
}

test("the answer to a dialog that was closed closes no other one and leads nowhere", async (t) => {
  const { page, server } = draft(t);
  const held = server.hold("tasks.clone");
  await choose(page, "Clone…");
  await page.in("dialog").in("button", "Clone").click();
  const answer = await page.arrived(held);
  await page.press("Escape");
  await choose(page, "Move to a project…");
  await page.fill("combobox", "Project", "Somewhere");
  answer.answer();
  await page.sees("The clone is a draft");
  assert.equal(page.in("combobox", "Project").value(), "Somewhere");
  assert.equal(page.address, `${RUN}/overview`);
});

test("a name that is refused late comes back and leaves the focus where it is", async (t) => {
  const { page, server } = draft(t);
  const held = server.hold("tasks.update");
  await page.click("button", "Change the name of the run");
  await page.type(" too");
  await page.press("Enter");
  const answer = await page.arrived(held);
  await page.click("button", "Add a comment");
  await page.type("a com");
  answer.refuse("this name is not good");
  await page.sees("Not done. this name is not good");
  assert.equal(page.in("textbox", "name of the run").value(), "mine too");
  await page.type("ment");
  assert.equal(page.in("textbox", "Comment").value(), "a comment");
});

test("one edit that is refused leaves the others as they are", async (t) => {
  const { page, server } = draft(t);
  const held = server.hold("tasks.update");
  await page.click("button", "Change the name of the run");
  await page.type(" too");
  await page.press("Enter");
  const answer = await page.arrived(held);
  await page.click("button", "Add a comment");
  await page.type("a comment");
  await page.click("button", "Save");
  answer.refuse("this name is not good");
  const second = await page.arrived(held, 2);
  await page.get("textbox", "name of the run");
  await page.in("region", "Comment").has("a comment");
  second.answer();
});

for (const newer of ["", "a newer draft"]) {
  test(`a comment that is refused comes back but not over a newer draft: ${newer || "none"}`, async (t) => {
    const { page, server } = draft(t);
    const held = server.hold("tasks.update");
    await page.click("button", "Add a comment");
    await page.fill("textbox", "Comment", "the first");
    await page.click("button", "Save");
    const answer = await page.arrived(held);
    if (newer) {
      await page.in("region", "Comment").in("button", "Edit").click();
      await page.fill("textbox", "Comment", newer);
    }
    answer.refuse("not now");
    await page.sees("Not done. not now");
    assert.equal(page.in("textbox", "Comment").value(), newer || "the first");
  });
}

test("parameters that are saved late do not end another change of them", async (t) => {
  const { page, server } = draft(t);
  const held = server.hold("tasks.edit_hyper_params");
  const region = page.in("region", "Parameters");
  await region.in("button", "Edit").click();
  await region.in("textbox", "Value of lr").fill("2");
  await region.in("button", "Save").click();
  const answer = await page.arrived(held);
  await region.in("button", "Cancel").click();
  await region.in("button", "Edit").click();
  await region.in("textbox", "Value of lr").fill("3");
  answer.answer();
  await page.sees("The parameters are saved");
  assert.equal(region.in("textbox", "Value of lr").value(), "3");
});

test("a heading that comes late leaves the focus where it was put meanwhile", async (t) => {
  const { server } = serverOf(PARENT);
  const page = open(t, `${RUN}/overview`, server);
  await page.get("link", "the parent");
  const held = server.hold("tasks.get_all_ex");
  await page.click("link", "the parent");
  await page.arrived(held);
  const search = await page.get("button", "Search (key: /)");
  search.focus();
  for (const one of held) one.answer();
  server.release("tasks.get_all_ex");
  await page.get("heading", "the parent");
  await page.settle();
  assert.equal(page.focus, search);
});

test("a step to another plot changes no address of another tab", async (t) => {
  const { server } = serverOf();
  const at = (iter: number) => ({
    events: [{ metric: "table", variant: "v", iter, plot_str: PLOT }],
    min_iteration: 1,
    max_iteration: 2,
    scroll_id: "s",
  });
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
  await page.pass(1000);
  assert.equal(page.address, `${RUN}/overview`);
});

test("a sign-out that fails says so", async (t) => {
  const { page, server } = draft(t);
  const held = server.hold("login.logout");
  await page.click("button", "Me menu");
  await page.click("menuitem", "Sign out");
  (await page.arrived(held)).fail();
  await page.sees("Not done. The server does not answer");
  assert.deepEqual(page.left, []);
});
