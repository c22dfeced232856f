/** Changing a run on its page: name, comment, tags, parameters, and what the menu of actions does. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { open } from "../harness/open";
import { choose, parameters, RUN, serverOf } from "../harness/run";
import { Refusal } from "../harness/server";

const OVERVIEW = `${RUN}/overview`;
const RENAME = "Change the name of the run";
const NAME = "name of the run";

test("name, comment and tags are changed and stay", async (t) => {
  const { server, run } = serverOf({ status: "completed", tags: ["old"] });
  const page = open(t, OVERVIEW, server);
  await page.click("button", RENAME);
  await page.fill("textbox", NAME, "better");
  await page.press("Enter");
  await page.get("heading", "better");
  await page.click("button", "+ tag");
  await page.fill("combobox", "New tag", "new");
  await page.press("Enter");
  await page.click("button", "Remove the tag old");
  await page.in("group", "Tags").lacks("old");
  await page.click("button", "Add a comment");
  await page.fill("textbox", "Comment", "It went well.");
  await page.click("button", "Save");
  await page.in("region", "Comment").has("It went well.");
  await page.until(() => run["comment"] === "It went well.");
  assert.deepEqual([run.name, run["tags"]], ["better", ["new"]]);
});

test("an edit that is refused goes back and says why", async (t) => {
  const { server } = serverOf();
  const page = open(t, OVERVIEW, server);
  server.on({
    "tasks.update": () => {
      throw new Refusal(400, "bad name");
    },
  });
  await page.click("button", RENAME);
  await page.fill("textbox", NAME, "too late");
  await page.press("Enter");
  await page.sees("Not done. bad name");
  assert.equal(page.in("textbox", NAME).value(), "too late");
  await page.in("textbox", NAME).press("Escape");
  await page.get("heading", "mine");
});

test("an edit shows on while others change the run", async (t) => {
  const { server, run } = serverOf();
  const page = open(t, OVERVIEW, server);
  await page.live();
  const held = server.hold("tasks.update");
  await page.click("button", RENAME);
  await page.fill("textbox", NAME, "better");
  await page.press("Enter");
  const answer = await page.arrived(held);
  run["comment"] = "theirs";
  server.tell("status", { task: "t", name: "mine", project: "p", status: "created" });
  await page.in("region", "Comment").has("theirs");
  await page.get("heading", "better");
  answer.answer();
  await page.until(() => run.name === "better");
  await page.get("heading", "better");
});

test("edits are sent one after another", async (t) => {
  const { server, run } = serverOf({ status: "completed", tags: ["old"] });
  const page = open(t, OVERVIEW, server);
  const held = server.hold("tasks.update_tags");
  const tags = page.in("group", "Tags");
  await page.click("button", "+ tag");
  await page.fill("combobox", "New tag", "new");
  await page.press("Enter");
  const answer = await page.arrived(held);
  await page.click("button", "Remove the tag old");
  await tags.lacks("old");
  await page.settle();
  assert.equal(held.length, 1);
  answer.answer();
  (await page.arrived(held, 2)).answer();
  assert.deepEqual(held[1]!.question.body["remove_tags"], ["old"]);
  await page.settle();
  assert.deepEqual(run["tags"], ["new"]);
  await tags.has("new");
  await tags.lacks("old");
});

test("a new tag is sent once and not by Escape", async (t) => {
  const { server, run } = serverOf({ status: "completed" });
  const page = open(t, OVERVIEW, server);
  const held = server.hold("tasks.update_tags");
  for (const [tag, key] of [
    ["forgotten", "Escape"],
    ["refused", "Enter"],
  ] as const) {
    await page.click("button", "+ tag");
    await page.fill("combobox", "New tag", tag);
    await page.press(key);
  }
  (await page.arrived(held)).refuse("not this one");
  const field = page.in("combobox", "New tag");
  await page.until(() => field.value() === "refused");
  await field.fill("good");
  await field.press("Enter");
  (await page.arrived(held, 2)).answer();
  await page.settle();
  assert.deepEqual(run["tags"], ["good"]);
  assert.equal(held.length, 2);
});

test("tags that others add meanwhile stay", async (t) => {
  const { server, run } = serverOf({ status: "completed", tags: ["old"] });
  const page = open(t, OVERVIEW, server);
  await page.get("button", "Remove the tag old");
  run["tags"] = ["old", "theirs"];
  await page.click("button", "+ tag");
  await page.fill("combobox", "New tag", "mine");
  await page.press("Enter");
  await page.click("button", "Remove the tag old");
  await page.settle();
  assert.deepEqual(run["tags"], ["theirs", "mine"]);
  await page.in("group", "Tags").has("theirs");
});

for (const [key, sent] of [
  ["Enter", [["name"], ["comment"]]],
  ["Escape", [["comment"]]],
] as const) {
  test(`a key ends the change of a name once: ${key}`, async (t) => {
    const { server, run } = serverOf();
    const page = open(t, OVERVIEW, server);
    await page.click("button", RENAME);
    await page.fill("textbox", NAME, "typed");
    await page.press(key);
    await page.click("button", "Add a comment");
    await page.type("later");
    await page.click("button", "Save");
    await page.until(() => run["comment"] === "later");
    await page.get("heading", key === "Enter" ? "typed" : "mine");
    const edits = server.bodies("tasks.update").map(({ task: _, ...fields }) => Object.keys(fields));
    assert.deepEqual(edits, sent);
  });
}

test("a double click clones once and closes no dialog", async (t) => {
  const { server } = serverOf({ status: "completed" });
  const page = open(t, OVERVIEW, server);
  const held = server.hold("tasks.clone");
  await page.click("button", "Actions");
  await page.in("menuitem", "Clone…").doubleClick();
  const dialog = page.in("dialog");
  await dialog.in("textbox", "Name").fill("cloned once");
  await dialog.in("button", "Clone").doubleClick();
  (await page.arrived(held)).answer();
  await page.get("heading", "cloned once");
  assert.equal(held.length, 1);
});

test("a clone gets no blank name", async (t) => {
  const { server } = serverOf({ status: "completed" });
  const page = open(t, OVERVIEW, server);
  await choose(page, "Clone…");
  const name = page.in("dialog").in("textbox", "Name");
  await name.fill("  ");
  await name.press("Enter");
  assert.deepEqual(server.bodies("tasks.clone"), []);
  await name.fill(" cloned ");
  await name.press("Enter");
  await page.get("heading", "cloned");
  assert.deepEqual(
    server.bodies("tasks.clone").map((body) => body["new_task_name"]),
    ["cloned"],
  );
});

test("parameters of a draft are changed, removed and added", async (t) => {
  const { server, run } = serverOf({ hyperparams: parameters({ lr: "0.1", old: "x", seed: "7" }) });
  const page = open(t, OVERVIEW, server);
  const region = page.in("region", "Parameters");
  await region.in("button", "Edit").click();
  await region.in("textbox", "Value of lr").fill("0.2");
  await region.in("button", "Remove old").click();
  await region.in("button", "Add a parameter").click();
  await page.until(() => region.in("textbox", "Name").all().length > 0);
  const names = region
    .in("textbox", "Name")
    .all()
    .filter((one) => (one as HTMLInputElement).value === "");
  names.at(-1)!.focus();
  await page.type("clip");
  await region.in("textbox", "Value of clip").fill("1");
  await region.in("button", "Save").click();
  await page.until(() => region.in("rowheader").texts().join() === "clip,lr,seed");
  const stored = Object.values(run["hyperparams"]["Args"] as Record<string, { name: string; value: string }>);
  assert.deepEqual(Object.fromEntries(stored.map(({ name, value }) => [name, value])), {
    lr: "0.2",
    seed: "7",
    clip: "1",
  });
});

test("parameters of a run that has begun are locked", async (t) => {
  const { server } = serverOf({ status: "completed", hyperparams: parameters({ lr: "1" }) });
  const page = open(t, OVERVIEW, server);
  const edit = (await page.in("region", "Parameters").in("button", "Edit").element()) as HTMLButtonElement;
  assert.ok(edit.disabled);
  assert.equal(edit.title, "The run has begun: its parameters say what it ran with. Clone or reset it to change them.");
});

test("a clone is enqueued and dequeued", async (t) => {
  const { server } = serverOf({ status: "completed" });
  const page = open(t, OVERVIEW, server);
  await choose(page, "Clone…");
  await page.in("dialog").in("textbox", "Name").fill("second try");
  await page.in("dialog").in("button", "Clone").click();
  await page.get("heading", "second try");
  assert.equal(server.bodies("tasks.clone")[0]!["new_task_parent"], "t");
  await choose(page, "Enqueue…");
  await page.in("dialog").in("button", "Enqueue").click();
  await page.sees("queued");
  await choose(page, "Dequeue");
  await page.sees("draft");
  assert.equal(server.bodies("tasks.dequeue").length, 1);
});

test("a run is aborted, and reset only when that was confirmed", async (t) => {
  const { server, run } = serverOf({ status: "in_progress" });
  const page = open(t, OVERVIEW, server);
  await choose(page, "Abort");
  await page.sees("aborted");
  await choose(page, "Reset…");
  await page.in("dialog").has("all scalars, plots, images and console lines");
  assert.equal(run.status, "stopped");
  await page.in("dialog").in("button", "Reset").click();
  await page.sees("draft");
  assert.equal(run.status, "created");
});

test("a published run is locked, and says why", async (t) => {
  const { server } = serverOf({ status: "completed" });
  const page = open(t, OVERVIEW, server);
  await choose(page, "Publish…");
  await page.in("dialog").in("button", "Publish").click();
  await page.sees("published");
  await page.click("button", "Actions");
  const reset = await page.get("menuitem", "Reset…");
  assert.equal(reset.getAttribute("aria-disabled"), "true");
  assert.equal(reset.title, "It is published: clone it instead");
  await page.click("menuitem", "Reset…");
  assert.equal(page.in("dialog").count, 0);
});

test("a run is moved to another project", async (t) => {
  const { server } = serverOf();
  const page = open(t, OVERVIEW, server);
  await choose(page, "Move to a project…");
  await page.in("dialog").in("combobox", "Project").fill("Elsewhere/new");
  await page.in("dialog").in("button", "Move").click();
  await page.get("link", "Elsewhere/new");
});

test("a run is archived, restored and deleted", async (t) => {
  const { server } = serverOf({ status: "completed" });
  server.on({ "tasks.delete": () => ({}) });
  const page = open(t, OVERVIEW, server);
  const mark = (): boolean => page.in("article").text().includes("archived");
  await choose(page, "Archive");
  await page.until(mark);
  await page.click("button", "Undo");
  await page.until(() => !mark());
  await choose(page, "Archive");
  await page.until(mark);
  await choose(page, "Delete…");
  await page.in("dialog").has("can't be brought back");
  const held = server.hold("projects.get_by_id");
  server.hold("data/projects/p/tasks.json");
  server.hold("data/views");
  server.hold("projects.get_hyper_parameters");
  server.hold("projects.get_unique_metric_variants");
  await page.in("dialog").in("button", "Delete").click();
  await page.arrived(held);
  assert.equal(page.address, "/projects/p");
  assert.deepEqual(server.bodies("tasks.delete"), [{ task: "t" }]);
});

test("a guest sees everything and is offered no change", async (t) => {
  const { server } = serverOf({ hyperparams: parameters({ lr: "1" }), comment: "Look at this." });
  server.on({
    "users.get_current_user": () => ({
      user: { id: "g", name: "Guest", role: "guest", company: { id: "c", name: "C" } },
    }),
  });
  const page = open(t, OVERVIEW, server);
  await page.in("region", "Comment").has("Look at this.");
  await page.in("region", "Parameters").has("lr");
  for (const name of ["Actions", "Edit", "+ tag", RENAME]) assert.equal(page.all("button", name).length, 0, name);
});

test("each field that opens has the focus", async (t) => {
  const { server } = serverOf({ status: "completed" });
  const page = open(t, OVERVIEW, server);
  await page.click("button", RENAME);
  assert.ok(page.in("textbox", NAME).hasFocus());
  await page.press("Escape");
  await page.click("button", "Add a comment");
  assert.ok(page.in("textbox", "Comment").hasFocus());
  await page.type("good");
  await page.click("button", "Save");
  await page.click("button", "+ tag");
  await page.type("tag 1000");
  await page.press("Enter");
  await page.in("group", "Tags").has("tag 1000");
  await page.get("button", "+ tag");
  for (let n = 0; n < 2; n++) {
    await page.press("/");
    assert.ok(
      page.in("combobox", "Search projects").hasFocus() || page.focus?.getAttribute("aria-label")?.startsWith("Search"),
    );
    await page.press("Escape");
  }
});

test("what others change leaves alone what is being written", async (t) => {
  const { server, run } = serverOf({ hyperparams: parameters({ lr: "1", seed: "1" }) });
  const page = open(t, OVERVIEW, server);
  await page.live();
  await page.click("button", "Add a comment");
  await page.fill("textbox", "Comment", "half a sen");
  const region = page.in("region", "Parameters");
  await region.in("button", "Edit").click();
  await region.in("textbox", "Value of lr").fill("2");
  run["hyperparams"]["Args"]["clip"] = { section: "Args", name: "clip", value: "5" };
  Object.assign(run, { name: "renamed", comment: "theirs" });
  server.tell("status", { task: "t", name: "renamed", project: "p", status: "created" });
  await page.get("heading", "renamed");
  await region.in("heading").has("3");
  assert.equal(page.in("textbox", "Comment").value(), "half a sen");
  assert.equal(region.in("textbox", "Value of lr").value(), "2");
  await region.in("button", "Save").click();
  await region.in("row").with("lr").has("2");
  assert.deepEqual(region.in("rowheader").texts(), ["clip", "lr", "seed"]);
});
