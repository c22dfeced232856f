/** Search over everything: the palette and the page; the audit log, which is narrowed by the same fields. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { open } from "../harness/open";
import { serverOf } from "../harness/run";
import { FakeServer, type Question, Refusal } from "../harness/server";

/** A server with things of each kind, which have their names' words. */
function things(runs: readonly string[]): FakeServer {
  const { server } = serverOf();
  const found =
    (all: readonly string[]) =>
    ({ body }: Question): { id: string; name: string; status: string; project: { id: string; name: string } }[] =>
      all
        .filter((name) => name.includes(body["search_text"] ?? ""))
        .slice(0, body["page_size"])
        .map((name) => ({ id: name, name, status: "created", project: { id: "p", name: "P" } }));
  server.on({
    "tasks.get_all_ex": (question) => ({ tasks: question.body["system_tags"] ? [] : found(runs)(question) }),
    "models.get_all_ex": (question) => ({ models: found(["resnet weights"])(question) }),
    "reports.get_all_ex": (question) => ({ tasks: found(["Which model?"])(question) }),
    "projects.get_hyper_parameters": () => ({ parameters: [] }),
    "projects.get_unique_metric_variants": () => ({ metrics: [] }),
    "models.get_by_id": () => ({ model: { id: "resnet weights", name: "resnet weights" } }),
  });
  return server;
}

test("the palette finds and opens by keys alone", async (t) => {
  const page = open(t, "/reports", things(["resnet", "resnet small"]));
  await page.get("heading", "Reports");
  await page.press("/");
  await page.type("resnet");
  const dialog = page.in("dialog", "Search");
  await dialog.in("group", "Models").has("resnet weights");
  assert.equal(dialog.in("group", "Runs").in("option").count, 2);
  await page.until(() => !page.document.querySelector("[data-waiting]"));
  await page.press("ArrowDown", "ArrowDown", "Enter");
  await page.until(() => page.address === "/projects/p/models/resnet%20weights");
  await dialog.gone();
});

test("the search is in the address, and says that nothing was found", async (t) => {
  const page = open(t, "/search?q=resnet", things(["resnet"]));
  await page.in("group", "Runs").has("resnet");
  await page.fill("combobox", "Search", "Which");
  await page.in("group", "Reports").has("Which model?");
  await page.until(() => page.address === "/search?q=Which");
  await page.fill("combobox", "Search", "no such thing at all");
  await page.sees("Nothing has all words of");
});

test("there are ten of each and more when asked", async (t) => {
  const page = open(t, "/search?q=manifold", things(Array.from({ length: 12 }, (_, n) => `manifold ${n}`)));
  const runs = page.in("group", "Runs").in("option");
  await page.until(() => runs.count === 10);
  await page.click("button", "More runs");
  await page.until(() => runs.count === 12);
  assert.match(page.address, /kind=runs/);
});

test("an older answer never replaces a newer one", async (t) => {
  const server = things(["vit", "broken"]);
  const held = server.hold("tasks.get_all_ex");
  const page = open(t, "/search?q=vit", server);
  const older = [...(await page.until(() => (held.length ? held : null)))];
  await page.fill("combobox", "Search", "broken");
  await page.until(() => held.length > older.length);
  await page.settle();
  for (const one of held.slice(older.length)) one.answer();
  const runs = page.in("group", "Runs").in("option");
  await page.until(() => runs.texts().join().includes("broken"));
  for (const one of older) one.answer();
  await page.settle();
  assert.equal(runs.count, 1);
  assert.match(runs.text(), /broken/);
});

const line = (n: number): object => ({
  n,
  time: "2026-11-24T15:02:11.484Z",
  action: "tasks.edit",
  code: 200,
  times: 1,
  user: "u",
  name: "Ada",
  key: null,
  address: "a",
  what: null,
});

/** A server whose audit log has so many lines. */
function audited(count: number): FakeServer {
  return new FakeServer({
    "data/audit.json": ({ query }) => {
      const before = Number(query.get("before") ?? count + 1);
      const all = Array.from({ length: before - 1 }, (_, n) => line(before - 1 - n));
      return all.slice(0, Number(query.get("limit")));
    },
  });
}

test("a name of two words can be typed at any pace into the audit log's field", async (t) => {
  const page = open(t, "/settings/audit", audited(1));
  const field = page.in("searchbox", "User, by name or id");
  (await field.element()).focus();
  await page.type("Ada ");
  await page.until(() => page.address.includes("user=Ada"));
  await page.type("Lovelace");
  await page.until(() => page.address.endsWith("user=Ada+Lovelace"));
  assert.equal(field.value(), "Ada Lovelace");
});

test("lines of the audit log that are older than those of one answer are reached", async (t) => {
  const page = open(t, "/settings/audit?action=tasks.", audited(2100));
  const rows = (): number => page.document.querySelectorAll("tbody tr").length;
  for (let shown = 0; !page.all("link", "Older lines").length; ) {
    await page.until(() => rows() > shown);
    shown = rows();
    if (page.all("button", "Show more").length) await page.click("button", "Show more");
  }
  await page.click("link", "Older lines");
  assert.match(page.address, /action=tasks\.&before=101$/);
  await page.fill("searchbox", "Action, or how it begins", "tasks.e");
  await page.until(() => page.address.endsWith("action=tasks.e"));
});

test("a time that is none is said by the audit log", async (t) => {
  const page = open(t, "/settings/audit?since=yesterday", audited(0));
  page.server.on({
    "data/audit.json": () => {
      throw new Refusal(400, "since: no time");
    },
  });
  await page.sees("since: no time");
});

test("who is no admin is not led to the audit log, and is refused it", async (t) => {
  const server = new FakeServer({
    "users.get_current_user": () => ({
      user: { id: "u", name: "plain", role: "user", company: { id: "c", name: "C" } },
    }),
    "auth.get_credentials": () => ({ credentials: [] }),
    "users.get_sessions": () => ({ sessions: [] }),
    "data/audit.json": () => {
      throw new Refusal(403, "not for you");
    },
  });
  const page = open(t, "/settings", server);
  await page.get("link", "Usage");
  assert.equal(page.all("link", "Audit log").length, 0);
  await open(t, "/settings/audit", server).sees("not for you");
});
