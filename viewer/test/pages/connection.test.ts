/** What pages say and do when the connection is lost, when it is back, and when what they show is gone. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { open } from "../harness/open";
import type { Page } from "../harness/page";
import { RUN, serverOf } from "../harness/run";
import { FakeServer, Refusal } from "../harness/server";

const OVERVIEW = `${RUN}/overview`;
const isLost = (page: Page): boolean => page.all("status", "Connection lost").length > 0;

test("a lost connection is said in words until it is back", async (t) => {
  const { server, run } = serverOf();
  const page = open(t, OVERVIEW, server);
  await page.live();
  server.stop();
  await page.until(() => isLost(page));
  await page.sees("Is the server running");
  await page.get("heading", "mine");
  run["comment"] = "It is back.";
  server.start();
  await page.live();
  await page.until(() => page.all("alert").length === 0);
  await page.in("region", "Comment").has("It is back.");
});

test("a tab that could not be asked for comes when the server is back", async (t) => {
  const { server } = serverOf();
  const page = open(t, OVERVIEW, server);
  await page.live();
  server.stop();
  await page.click("tab", "Plots");
  await page.in("tabpanel").has("The server does not answer");
  server.start();
  await page.in("tabpanel").has("This run has reported no plots");
  assert.equal(page.all("alert").length, 0);
});

test("a stream that falls silent is lost", async (t) => {
  const { server } = serverOf();
  const page = open(t, OVERVIEW, server);
  await page.live();
  for (let n = 0; n < 4; n++) {
    await page.pass(15_000);
    server.tell("alive", {});
  }
  assert.ok(!isLost(page));
  server.freeze();
  await page.until(() => isLost(page));
});

test("the projects wait for their answer however long it takes", async (t) => {
  const projects = ["P"];
  const server = new FakeServer({
    "data/projects.json": () => projects.map((name) => ({ id: name, name, parent: null, tasks: 1 })),
    "projects.get_all": () => ({ projects: [] }),
    "data/projects/*/groups.json": () => [],
    "data/projects/*/tasks.json": () => [{ id: "t", name: "mine", status: "created", project: "P", last_update: null }],
  });
  const page = open(t, "/projects", server);
  await page.get("link", "P");
  const held = server.hold("data/projects.json");
  await page.pass(16_000);
  const answer = await page.arrived(held);
  projects.push("Newcomer");
  await page.pass(16_000);
  assert.ok(!answer.isGivenUp);
  answer.answer();
  await page.get("link", "Newcomer");
});

test("one question that finds no server is asked again", async (t) => {
  const { server } = serverOf();
  server.on({ "models.get_all_ex": () => ({ models: [{ id: "m", name: "weights" }] }) });
  const held = server.hold("models.get_all_ex");
  const page = open(t, "/models", server);
  (await page.arrived(held)).fail();
  (await page.arrived(held, 2)).answer();
  await page.get("link", "weights");
});

test("a computer that slept asks again", async (t) => {
  const { server } = serverOf();
  const page = open(t, OVERVIEW, server);
  await page.live();
  const before = server.bodies("tasks.get_all_ex").length;
  page.clock.now += 3_600_000;
  await page.until(() => server.bodies("tasks.get_all_ex").length > before);
  await page.live();
});

test("a hidden tab asks for nothing and is up to date when it is seen", async (t) => {
  const { server, run } = serverOf({ status: "in_progress" });
  const page = open(t, OVERVIEW, server);
  await page.live();
  await page.settle();
  page.hide(true);
  const before = server.asked.length;
  run.name = "renamed";
  server.tell("status", { task: "t", name: "renamed", project: "p", status: "in_progress" });
  await page.pass(120_000);
  assert.equal(server.asked.length, before);
  page.hide(false);
  await page.get("heading", "renamed");
});

test("a run that is deleted while it is looked at", async (t) => {
  const { server } = serverOf();
  const page = open(t, OVERVIEW, server);
  await page.live();
  const gone = (): never => {
    throw new Refusal(404, "gone");
  };
  server.on({ "tasks.get_all_ex": () => ({ tasks: [] }), "data/live": gone });
  server.tell("end", {});
  await page.get("heading", "This run was deleted");
  await page.get("link", "All runs");
  assert.ok(!isLost(page));
});

test("a page whose login has ended asks for another", async (t) => {
  const { server } = serverOf();
  const page = open(t, OVERVIEW, server);
  await page.live();
  server.on({
    "login.supported_modes": () => ({ basic: { enabled: true, guest: { enabled: false } }, provider: {} }),
    "data/live": () => {
      throw new Refusal(401, "ended");
    },
  });
  server.tell("end", {});
  await page.get("heading", "Sign in");
  assert.equal(page.address, `/sign-in?next=${OVERVIEW}`);
});
