/** The table of runs: filters, groups, marks, selection and actions, views, live changes. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import { open } from "../harness/open";
import type { Page, Part } from "../harness/page";
import type { FakeServer } from "../harness/server";
import { type Row, rows, tableOf } from "../harness/table";

const FEW = ["one", "two", "three"];

function table(
  t: TestContext,
  all: Row[] = rows(...FEW),
  query = "?sort=name",
): { page: Page; server: FakeServer; all: Row[] } {
  const server = tableOf(all);
  return { page: open(t, `/projects/p${query}`, server), server, all };
}

/** The names of the runs that are seen, in order. */
function names(page: Page): string[] {
  return page
    .all("gridcell")
    .flatMap((cell) => [...cell.querySelectorAll("a[href*='/tasks/']")].map((link) => link.textContent ?? ""));
}

async function shows(page: Page, ...wanted: string[]): Promise<void> {
  await page.until(() => names(page).join() === wanted.join(), `the runs are ${wanted.join()}`);
}

async function select(page: Page, ...which: string[]): Promise<void> {
  for (const name of which) await page.click("checkbox", `Select ${name}`);
}

const chosenBar = (page: Page): Part => page.in("toolbar", "What to do with the selected runs");
const toolbar = (page: Page): string => chosenBar(page).text();

test("a click sorts and the address says it", async (t) => {
  const { page } = table(
    t,
    rows({ id: "a", status: "queued" }, { id: "b", status: "created" }),
    "?cols=name,status&sort=name",
  );
  await shows(page, "a", "b");
  const head = page.in("columnheader", "Status");
  (await head.until(() => head.in("button").all()[0])).click();
  await shows(page, "b", "a");
  assert.equal((await head.element()).getAttribute("aria-sort"), "ascending");
  assert.match(page.address, /sort=status/);
  (await head.until(() => head.in("button").all()[0])).click();
  await shows(page, "a", "b");
  await page.back();
  await shows(page, "b", "a");
});

test("a search that finds nothing says so, and leads back to all", async (t) => {
  const { page } = table(t);
  await page.fill("searchbox", "Search runs", "two");
  await shows(page, "two");
  await page.fill("searchbox", "Search runs", "no such run");
  await page.click("button", "Show all runs");
  await shows(page, "one", "three", "two");
});

test("what is typed while rows are asked for is asked for, too, and stays", async (t) => {
  const { page, server } = table(t);
  await shows(page, "one", "three", "two");
  const held = server.hold("data/projects/p/tasks.json");
  await page.fill("searchbox", "Search runs", "t");
  const older = await page.arrived(held);
  await page.fill("searchbox", "Search runs", "tw");
  (await page.arrived(held, 2)).answer();
  await shows(page, "two");
  older.answer();
  await page.settle();
  await shows(page, "two");
  assert.equal(page.in("searchbox", "Search runs").value(), "tw");
  assert.match(page.address, /q=tw/);
});

test("groups open and close", async (t) => {
  const all = rows({ id: "a", tags: ["even"] }, "b", { id: "c", tags: ["even"] });
  const { page } = table(t, all, "?group=tags&sort=name");
  const group = page.in("row").with("Tags: even");
  await group.has("2 runs");
  await page.in("row").with("Tags: none").has("1 run");
  await group.in("button", "Tags: even").click();
  await shows(page, "a", "c");
  await group.in("button", "Tags: even").click();
  await shows(page);
});

test("rows are marked and the address keeps it", async (t) => {
  const { page } = table(t);
  const mark = async (entry: string): Promise<void> => {
    await page.click("button", "Mark the selected runs");
    const entries = [...page.all("menuitem", entry), ...page.all("menuitemradio", entry)];
    entries[0]!.click();
    await page.settle();
  };
  await select(page, "two");
  await mark("Pin to the top");
  await shows(page, "two", "one", "three");
  await mark("Orange");
  await page.until(() => page.document.querySelectorAll("[data-colour='1']").length === 1);
  await page.click("button", "Select none");
  await select(page, "one");
  await mark("Hide");
  await shows(page, "two", "three");
  assert.match(page.address, /pin=two/);
  assert.match(page.address, /hide=one/);
  assert.match(page.address, /colour=two.1/);
  await page.click("button", "Show 1 hidden");
  await shows(page, "two", "one", "three");
});

test("a row is marked from its own menu", async (t) => {
  const { page } = table(t);
  await page.click("button", "Mark two");
  await page.click("menuitem", "Hide");
  await shows(page, "one", "three");
  assert.match(page.address, /hide=two/);
});

test("keys move and select", async (t) => {
  const { page } = table(t);
  await shows(page, "one", "three", "two");
  await page.press("j", "x", "j", "j", "X");
  await page.until(() => toolbar(page).includes("3 selected"));
  await page.press("Escape");
  await chosenBar(page).gone();
  const held = page.server.hold("tasks.get_all_ex");
  await page.press("Enter");
  await page.arrived(held);
  assert.equal(page.address, "/projects/p/tasks/two/overview");
});

test("the active row stays the same run while others come", async (t) => {
  const { page, server, all } = table(t, undefined, "?cols=name&sort=name");
  await shows(page, "one", "three", "two");
  await page.live();
  await page.press("j", "x", "j");
  const active = (): string => page.document.querySelector("[data-active]")?.textContent ?? "";
  await page.until(() => active().includes("three"));
  for (const id of ["above", "also above"]) {
    all.push(...rows(id));
    server.tell("status", { task: id, name: id, project: "p", status: "created" });
    await page.until(() => names(page).includes(id));
    assert.ok(active().includes("three"));
  }
  await page.press("X");
  await page.until(() => toolbar(page).includes("2 selected"));
  await page.press("j");
  await page.until(() => active().includes("two"));
});

test("all that match are selected", async (t) => {
  const all = rows(...Array.from({ length: 150 }, (_, n) => ({ id: `run ${n}`, lr: n % 2 })));
  const where = encodeURIComponent(JSON.stringify([["lr", "is", 1]]));
  const { page } = table(t, all, `?sort=name&where=${where}`);
  await page.until(() => page.in("grid").all()[0]?.getAttribute("aria-rowcount") === "76");
  await select(page, "run 1");
  assert.ok(((await page.get("checkbox", "Select none")) as HTMLInputElement).indeterminate);
  await page.click("checkbox", "Select none");
  await page.click("checkbox", "Select all runs that match");
  await page.until(() => toolbar(page).includes("75 selected"));
});

test("runs are archived, and those that run only when that was confirmed", async (t) => {
  const { page, all } = table(t, rows("one", { id: "two", status: "in_progress" }));
  await select(page, "one");
  await page.click("button", "Archive");
  await page.sees("Archived 1 run");
  await shows(page, "two");
  await select(page, "two");
  await page.click("button", "Archive");
  await page.in("dialog").has("Those that are running or queued are aborted.");
  assert.deepEqual(
    all.map((row) => row["system_tags"].length),
    [1, 0],
  );
  await page.in("dialog").in("button", "Archive 1 run").click();
  await page.until(() => all.every((row) => row["system_tags"].length));
});

test("only runs that can be deleted are deleted", async (t) => {
  const { page, all } = table(t, rows("one", "two", { id: "three", status: "in_progress" }));
  await page.click("checkbox", "Select all runs that match");
  await page.click("button", "Delete");
  const dialog = page.in("dialog", "Delete 2 of 3 runs?");
  await dialog.has("all scalars, plots, images and console lines");
  assert.equal(dialog.in("listitem").with("three").count, 0);
  assert.match(dialog.in("note").text(), /^Left out: 1 run \(1 running\)\. Only drafts and archived runs/);
  await dialog.in("button", "Delete 2 runs").click();
  await page.sees("Deleted 2 runs");
  await shows(page, "three");
  assert.deepEqual(
    all.map(({ id }) => id),
    ["three"],
  );
});

test("runs are archived instead of deleted", async (t) => {
  const { page, all } = table(t, rows(...FEW.map((id) => ({ id, status: "in_progress" }))));
  await select(page, "one", "two");
  await page.click("button", "Delete");
  const dialog = page.in("dialog");
  await dialog.has("Archiving aborts runs that are running or queued.");
  assert.equal(dialog.in("button", "Delete").count, 0);
  await dialog.in("button", "Archive 2 runs instead").click();
  await page.sees("Archived 2 runs");
  await shows(page, "three");
  assert.deepEqual(
    all.filter((row) => row["system_tags"].length).map(({ id }) => id),
    ["one", "two"],
  );
});

test("what the server refuses to delete is named, and stays selected", async (t) => {
  const { page, server, all } = table(t);
  server.on({
    "tasks.delete_many": ({ body }) => {
      all.splice(0, 3, ...rows("two"));
      return {
        failed: body["ids"]
          .filter((id: string) => id === "two")
          .map((id: string) => ({ id, error: { msg: "published models=1" } })),
      };
    },
  });
  await page.click("checkbox", "Select all runs that match");
  await page.click("button", "Delete");
  await page.click("button", "Delete 3 runs");
  const dialog = page.in("dialog", "Deleted 2 of 3 runs");
  await dialog.in("listitem").has("two: published models=1");
  await dialog.in("button", "Close").until(() => dialog.in("button", "Close").all().at(-1)?.click() ?? true);
  await shows(page, "two");
  assert.ok(((await page.get("checkbox", "Select two")) as HTMLInputElement).checked);
});

test("only drafts are enqueued and only active runs aborted", async (t) => {
  const { page, all } = table(t, rows({ id: "one", status: "completed" }, "two", "three"));
  await page.click("checkbox", "Select all runs that match");
  await page.click("button", "Enqueue");
  const enqueue = page.in("dialog", "Enqueue 3 runs");
  await enqueue.in("note").has("Left out: 1 run (1 completed). Only drafts and runs");
  await enqueue.in("button", "Enqueue 2 runs").click();
  await page.sees("Enqueued 2 runs");
  await page.click("checkbox", "Select all runs that match");
  await page.click("button", "Abort");
  const abort = page.in("dialog", "Abort 2 of 3 runs?");
  await abort.in("note").has("Left out: 1 run (1 completed)");
  await abort.in("button", "Abort 2 runs").click();
  await page.sees("Aborted 2 runs");
  assert.deepEqual(all.map(({ status }) => status).sort(), ["completed", "stopped", "stopped"]);
});

test("a view is saved once and its late answer closes no other dialog", async (t) => {
  const { page, server } = table(t);
  await shows(page, "one", "three", "two");
  const saveAs = async (name: string): Promise<void> => {
    await page.click("button", "Views");
    await page.click("menuitem", "Save this view…");
    await page.in("dialog").in("textbox", "Name").fill(name);
  };
  await saveAs("late");
  const held = server.hold("data/views");
  await page.in("dialog").in("button", "Save").doubleClick();
  const answer = await page.arrived(held);
  server.release("data/views");
  await page.press("Escape");
  await saveAs("other");
  answer.answer();
  await page.sees("Saved late");
  assert.equal(page.in("dialog").in("textbox", "Name").value(), "other");
  assert.equal(held.length, 1);
});

test("a double click clones chosen runs once", async (t) => {
  const { page, server } = table(t);
  await select(page, "one");
  const held = server.hold("tasks.get_all");
  await page.in("button", "Clone").doubleClick();
  (await page.arrived(held)).answer();
  await page.sees("Cloned 1 run");
  assert.equal(held.length, 1);
  await shows(page, "Clone of one", "one", "three", "two");
});

test("rows change while the runs do", async (t) => {
  const { page, server, all } = table(t, undefined, "?cols=name,status&sort=name");
  const row = page.in("row").with("one");
  await row.has("draft");
  await page.live();
  all[0]!.status = "in_progress";
  server.tell("status", { task: "one", name: "one", project: "p", status: "in_progress" });
  await row.has("running");
  all.push(...rows("zebra"));
  server.tell("status", { task: "zebra", name: "zebra", project: "p", status: "created" });
  await page.until(() => names(page).includes("zebra"));
});

test("all runs that match are compared, and the runs of a group", async (t) => {
  const { page } = table(t, rows({ id: "a", status: "queued" }, { id: "b", status: "queued" }), "?group=status");
  const group = page.in("row").with("Status: queued");
  const where = (link: HTMLElement): unknown =>
    JSON.parse(new URL(link.getAttribute("href")!, "http://server").searchParams.get("where")!);
  const one = await group.in("link", "Compare").element();
  assert.deepEqual((where(one) as { conditions: unknown[] }).conditions.at(-1), ["status", "is", "queued"]);
  const all = await page.get("link", "Compare all");
  assert.match(all.getAttribute("href")!, /group=status/);
});

test("a question that comes late leaves a dialog alone that was opened meanwhile", async (t) => {
  const { page, server } = table(t, rows({ id: "one", status: "in_progress" }));
  await select(page, "one");
  const held = server.hold("tasks.get_all");
  await page.click("button", "Archive");
  const answer = await page.arrived(held);
  await chosenBar(page).in("button", "Tags").click();
  await page.get("dialog", "Tags of 1 run");
  answer.answer();
  await page.settle();
  assert.equal(page.all("dialog")[0]!.getAttribute("aria-label"), "Tags of 1 run");
});

/** The dialog that filters by a column. */
async function filterBy(page: Page, column: string): Promise<Part> {
  await page.click("button", "+ Filter");
  const dialog = page.in("dialog", "Filter runs");
  await dialog.in("combobox", "Column").fill(column);
  return dialog;
}

test("values are chosen for a filter, which is changed and removed", async (t) => {
  const all = rows({ id: "a", status: "queued" }, { id: "b", status: "created" }, { id: "c", status: "failed" });
  const { page } = table(t, all);
  const dialog = await filterBy(page, "status");
  assert.ok((await dialog.in("button", "Filter").element()).matches(":disabled"), "nothing is chosen");
  await dialog.in("checkbox", "Queued").click();
  await dialog.in("checkbox", "Failed").click();
  await dialog.in("button", "Filter").click();
  await shows(page, "a", "c");
  await page.click("button", "Status is queued or failed");
  const change = page.in("dialog", "Change the filter");
  await change.in("checkbox", "All runs but these").click();
  await change.in("button", "Filter").click();
  await shows(page, "b");
  assert.match(page.address, /where=/);
  await page.click("button", "Remove the filter");
  await shows(page, "a", "b", "c");
});

test("a filter by a number takes no text, and is not lost by Escape", async (t) => {
  const [low, high] = [0.001, 0.1];
  const all = rows({ id: "a", "hyperparams.Args/lr": low }, { id: "b", "hyperparams.Args/lr": high });
  const { page } = table(t, all);
  await page.until(() => names(page).length === 2);
  const dialog = await filterBy(page, "hyperparams.Args/lr");
  await dialog.in("radio", "Number").click();
  await dialog.in("textbox", "Number").fill("little");
  await dialog.has("That is no number");
  assert.ok((await dialog.in("button", "Filter").element()).matches(":disabled"));
  await dialog.in("textbox", "Number").fill("1e-2");
  await dialog.in("button", "Filter").click();
  await shows(page, "a");
  await page.click("button", "lr ≤ 0.01");
  await page.in("dialog", "Change the filter").element();
  await page.press("Escape");
  await page.in("dialog").gone();
  await shows(page, "a");
});

test("columns are searched, chosen and put back", async (t) => {
  const { page, server } = table(t, rows({ id: "a", "hyperparams.Args/lr": "0.5" }));
  server.on({
    "projects.get_unique_metric_variants": () => ({ metrics: [{ metric: "loss", variant: "train" }] }),
  });
  await page.click("button", "Columns");
  const dialog = page.in("dialog", "Columns");
  await dialog.in("searchbox", "Search columns").fill("lr");
  await dialog.until(() => dialog.in("checkbox").all().length === 1);
  await dialog.in("checkbox", "lr").click();
  await page.in("columnheader", "lr").element();
  await page.in("gridcell").with("0.5").element();
  await dialog.in("searchbox", "Search columns").fill("loss");
  const least = dialog.in("group", "loss/train").in("button", "least");
  await least.click();
  await page.in("columnheader", "loss/train").has("least");
  await dialog.until(async () => (await least.element()).getAttribute("aria-pressed") === "true");
  await least.click();
  await page.until(() => page.all("columnheader", "loss/train").length === 0);
  await dialog.in("button", "As usual").click();
  await page.until(() => !page.address.includes("cols="));
  await dialog.in("button", "Done").click();
  await page.until(() => page.all("dialog").length === 0);
});
