/** Comparisons of runs: what is best, what differs, who takes part. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import { open } from "../harness/open";
import type { Page } from "../harness/page";
import { parameters } from "../harness/run";
import { textOf } from "../harness/screen";
import { FakeServer } from "../harness/server";

interface Compared {
  id: string;
  name: string;
  [field: string]: unknown;
}

/** A run with a loss and the load of a machine. */
function run(id: string, loss: number, more: object = {}): Compared {
  const metric = (name: string, variant: string, value: number): object => ({
    metric: name,
    variant,
    value,
    min_value: value,
    max_value: value,
  });
  const last_metrics = {
    a: { b: metric("loss", "train", loss) },
    c: { d: metric(":monitor:gpu", "gpu_0", 10 * loss) },
  };
  return {
    id,
    name: id,
    type: "training",
    status: "completed",
    project: { id: "p", name: "P" },
    tags: [],
    last_metrics,
    ...more,
  };
}

function compare(t: TestContext, all: Compared[], query: Record<string, string>): Page {
  const server = new FakeServer({
    "tasks.get_all_ex": ({ body }) => {
      const [named, text] = [body["id"] as string[] | undefined, String(body["_any_"]?.pattern).replace("(?i)", "")];
      const tasks = all.filter(({ id, name }) => (named ? named.includes(id) : name.startsWith(text)));
      return { tasks: structuredClone(tasks) };
    },
    "data/projects/p/tasks.json": () => all.map(({ id }) => ({ id })),
    "data/views": () => [],
    "projects.get_by_id": () => ({ project: { id: "p", name: "P" } }),
  });
  const ids = query["where"] ? {} : { tasks: all.map(({ id }) => id).join(",") };
  return open(t, `/projects/p/compare?${new URLSearchParams({ ...ids, ...query })}`, server);
}

/** The runs of the table whose value is marked as the best. */
const best = (page: Page): string[] =>
  [...page.document.querySelectorAll("tbody tr")]
    .filter((row) => [...row.querySelectorAll("[data-best]")].some((one) => textOf(one).includes("Best:")))
    .map((row) => textOf(row.querySelector("th")));
const names = (page: Page): string[] =>
  [...page.document.querySelectorAll("tbody th[scope=row]")].map((one) => textOf(one));

test("what is best is turned round", async (t) => {
  const page = compare(t, [run("good", 0.1), run("bad", 2)], { tab: "table", number: "min", sort: "min:loss/train" });
  await page.until(() => best(page).join() === "good");
  await page.in("columnheader").with("loss/train").in("button", "less is better").click();
  await page.in("columnheader").with("loss/train").in("button", "more is better").element();
  await page.until(() => best(page).join() === "bad");
  await page.until(() => page.address.includes("flip=loss/train"));
});

test("what has no known direction has no best", async (t) => {
  const page = compare(t, [run("one", 1), run("two", 2)], { tab: "table", only: "gpu_0" });
  const turn = page.in("button", "which is best?");
  await turn.element();
  assert.deepEqual(best(page), []);
  await turn.click();
  await page.until(() => best(page).length > 0);
});

test("texts are compared line by line", async (t) => {
  const text = (value: string): object => ({ configuration: { model: { name: "model", value } } });
  const page = compare(
    t,
    [run("one", 1, text("depth: 50\nwidth: 64\n")), run("two", 1, text("depth: 52\nwidth: 64\n"))],
    { tab: "differences" },
  );
  const row = await page.until(() => page.document.querySelector('[data-row="Configuration/model"]'));
  const button = [...row.querySelectorAll("button")].find((one) => one.textContent?.includes("Compare lines"))!;
  button.click();
  const lines = (): Element[] => [...page.document.querySelectorAll("[aria-label*='line by line'] tbody tr")];
  await page.until(() => lines().length === 2);
  assert.deepEqual(
    lines().map((one) => one.getAttribute("data-kind")),
    ["changed", "same"],
  );
  assert.deepEqual(
    [...lines()[0]!.querySelectorAll("mark")].map((one) => one.textContent),
    ["0", "2"],
  );
  await page.click("button", "Close");
  await page.until(() => lines().length === 0);
});

test("a filter takes the place of ids and stays live", async (t) => {
  const all = [run("one", 1), run("two", 2)];
  const page = compare(t, all, { tab: "table", where: JSON.stringify({ tags: ["sweep"] }) });
  await page.until(() => names(page).length === 2);
  await page.live();
  all.push(run("three", 3));
  page.server.tell("status", { task: "three", name: "three", project: "p", status: "created" });
  await page.until(() => names(page).length === 3);
});

test("a running run moves", async (t) => {
  const all = [run("moving", 4, { status: "in_progress" }), run("other", 2)];
  const page = compare(t, all, { tab: "table" });
  const row = page.in("row").with("moving");
  await row.has("4");
  await page.live();
  all[0] = run("moving", 3.125, { status: "in_progress" });
  page.server.tell("scalars", { task: "moving", series: null });
  await row.has("3.125");
});

test("without runs the page says what to do", async (t) => {
  const page = open(t, "/projects/p/compare", compare(t, [], { tasks: "gone" }).server);
  await page.get("heading", "No runs are selected");
  await compare(t, [], { tasks: "gone" }).get("heading", "None of these runs is there any more");
});

test("names of users are text in comparisons", async (t) => {
  const name = "<img src=x onerror=alert(1)>";
  for (const tab of ["table", "differences"]) {
    const page = compare(t, [run("bad", 1, { name, hyperparams: parameters({ [name]: name }) }), run("good", 2)], {
      tab,
    });
    await page.until(() => page.all("link", name).length > 0);
    assert.equal(page.document.querySelectorAll("img").length, 0);
  }
});

test("runs are hidden, shown alone, made the base, and removed", async (t) => {
  const all = [run("a", 1), run("b", 2), run("c", 3)];
  const page = compare(t, all, { tab: "table" });
  const entry = (name: string) => page.in("list", "Runs").in("listitem").with(name);
  await page.until(() => names(page).length === 3);
  await page.click("checkbox", "Show b");
  await page.sees("2 shown");
  await page.until(() => !names(page).some((name) => name.startsWith("b")));
  await page.click("button", "More about b");
  await page.click("menuitem", "Show only this run");
  await page.sees("1 shown");
  await page.click("button", "Show all");
  await page.sees("All shown");
  await page.click("button", "More about c");
  await page.click("menuitem", "Compare the others with this run");
  await entry("c").has("base");
  await page.click("button", "More about a");
  await page.click("menuitem", "Remove from the comparison");
  await page.until(() => names(page).length === 2);
  await page.back();
  await page.until(() => names(page).length === 3);
});

test("a run is added by its name", async (t) => {
  const all = [run("a", 1), run("b", 2), run("other", 3)];
  const page = compare(t, all, { tab: "table", tasks: "a,b" });
  await page.until(() => names(page).length === 2);
  await page.fill("searchbox", "Add a run by name or id", "b");
  await page.sees("No other run is named so");
  await page.fill("searchbox", "Add a run by name or id", "oth");
  await page.click("button", "other");
  await page.until(() => names(page).length === 3);
});
