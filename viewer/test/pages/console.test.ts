/** The console of a run: what its lines show, how they fold, what is copied, and what is said when nothing is answered. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import { type LogLine, lines, logOf, START } from "../harness/log";
import { open } from "../harness/open";
import type { Page } from "../harness/page";
import { RUN } from "../harness/run";
import { click, textOf } from "../harness/screen";

function console(t: TestContext, all: LogLine[], query = ""): Page {
  return open(t, `${RUN}/console${query}`, logOf(all));
}

/** The row of a line; the first line has number 1. */
function line(page: Page, number: number): HTMLElement | null {
  return page.document.querySelector(`[role="log"] [data-line="${number}"]`);
}

/** Another row than the first one of a line; the second one has number 2. */
function part(page: Page, number: number, row: number): HTMLElement | null {
  return page.document.querySelector(`[role="log"] [data-part="${number}.${row}"]`);
}

async function has(page: Page, row: () => HTMLElement | null, text: string): Promise<void> {
  await page.until(() => textOf(row()).includes(text), `a row has ${text}`);
}

/** Choose a line, or press the button in a row. */
async function press(
  page: Page,
  row: () => HTMLElement | null,
  button: string | null = null,
  options: { shiftKey?: boolean } = {},
): Promise<void> {
  const find = (): HTMLElement | null | undefined =>
    button === null
      ? row()
      : [...(row()?.querySelectorAll("button") ?? [])].find(
          (one) => one.textContent?.includes(button) || one.title.includes(button),
        );
  click(await page.until(find, `there is ${button ?? "the line"}`), options);
  await page.drawn();
}

test("a time leads to its line, and a line to the curves", async (t) => {
  const page = console(
    t,
    lines(Array.from({ length: 500 }, (_, n) => `step ${n} done`)),
    `?time=${START + 10 * 123 - 3}`,
  );
  await page.until(() => line(page, 124)?.dataset["chosen"] === "");
  const detail = page.in("region", "Line 124");
  await detail.has("step 123 done");
  assert.equal(
    (await detail.in("link", "On the curves").element()).getAttribute("href"),
    `${RUN}/scalars?at=${START + 1230}`,
  );
});

test("a line with breaks shows all its rows", async (t) => {
  const bar = " 50%|██ | 5/10 [00:01<00:01, 5it/s]";
  const page = console(
    t,
    lines(["\nTraceback:\n  \x1b[31mfile\n  red\x1b[0m\nValueError\n", "alone", bar], { level: "error" }),
  );
  await has(page, () => line(page, 1), "Traceback:");
  assert.equal(part(page, 1, 2)!.querySelector("bdi > span")!.textContent, "file");
  assert.equal(part(page, 1, 3)!.querySelector("bdi > span")!.textContent, "  red");
  assert.match(textOf(part(page, 1, 4)), /ValueError/);
  assert.deepEqual(
    [part(page, 1, 4), line(page, 2), line(page, 3)].map((row) => row?.dataset["level"]),
    ["error", "error", undefined],
  );
  await press(page, () => part(page, 1, 4));
  const whole = await page.until(() => page.document.querySelector("[aria-label='The whole message']"));
  assert.match(whole.textContent!, /ValueError/);
  assert.equal(whole.querySelector("span")!.textContent, "file\n  red");
});

test("a line of many rows is unfolded and folded", async (t) => {
  const many = Array.from({ length: 5000 }, (_, n) => `row ${n + 1} of many`).join("\n");
  const page = console(t, lines(["before", many, "0%\r50%\r100%", "after"]), "?line=1");
  const rows = (): number => page.document.querySelectorAll("[role=log] [data-line], [role=log] [data-part]").length;
  await page.until(() => rows() === 1 + 20 + 1 + 1);
  await press(page, () => part(page, 2, 20), "characters");
  await has(page, () => part(page, 2, 25), "row 25 of many");
  await page.click("button", "Last line");
  await has(page, () => part(page, 2, 5000), "row 5000 of many");
  await press(page, () => line(page, 3), "2 more rows");
  await has(page, () => part(page, 3, 2), "50%");
  await press(page, () => part(page, 2, 5000), "Fewer rows");
  await has(page, () => part(page, 2, 20), "row 20 of many");
  await page.until(() => line(page, 4));
  assert.equal(page.document.querySelector("[data-chosen]"), null, "a click on a button chooses no line");
});

test("progress bars are folded", async (t) => {
  const bars = Array.from(
    { length: 101 },
    (_, n) => `train: ${n}%|${"█".repeat(n / 10)}| ${n}/100 [00:01<00:09, 9.9it/s]`,
  );
  const page = console(t, lines(["begin", ...bars, "  0%|  | 0/9\r 50%|█ | 5/9\r100%|██| 9/9", "end"]));
  await page.until(() => page.document.querySelectorAll("[data-line]").length === 4);
  await has(page, () => line(page, 102), "100/100");
  await has(page, () => line(page, 103), "100%|██| 9/9");
  assert.doesNotMatch(textOf(line(page, 103)), /50%/);
  await press(page, () => line(page, 102), "+100");
  await has(page, () => line(page, 101), "99/100");
});

test("levels and workers are filtered on the server", async (t) => {
  const all = Array.from(
    { length: 30 },
    (_, n) => lines([`line ${n}`], { level: ["info", "warning", "error"][n % 3]!, worker: "ab"[n % 2]! })[0]!,
  );
  const page = console(t, all);
  await page.in("combobox", "Levels").until(() =>
    page
      .in("combobox", "Levels")
      .in("option")
      .texts()
      .some((text) => text.startsWith("Errors")),
  );
  const errors = page
    .in("combobox", "Levels")
    .in("option")
    .all()
    .find((one) => textOf(one).startsWith("Errors")) as HTMLOptionElement;
  await page.fill("combobox", "Levels", errors.value);
  await page.sees("10 of 30 lines");
  await page.fill("combobox", "Workers", "b");
  await page.sees("5 of 30 lines");
  const numbers = [...page.document.querySelectorAll<HTMLElement>("[data-line]")].map((row) => row.dataset["line"]);
  assert.deepEqual(numbers, ["6", "12", "18", "24", "30"]);
});

test("chosen lines are copied whole", async (t) => {
  const long = `${"word ".repeat(10_000)}end`;
  const page = console(t, lines(["first", long, "x".repeat(200_001)]));
  await press(page, () => line(page, 1));
  await press(page, () => line(page, 2), null, { shiftKey: true });
  await page.press("c");
  await page.sees("Copied 2 lines");
  assert.deepEqual(page.copied, [`first\n${long}\n`]);
  await press(page, () => line(page, 3), null, { shiftKey: true });
  await page.press("c");
  await page.sees("Copied 3 lines; of long ones the first 200,000 characters");
});

test("more than a thousand hits are copied", async (t) => {
  const page = console(t, lines(Array.from({ length: 1200 }, (_, n) => `step ${n} done`)), "?q=done&only=1");
  await page.sees("1,200 of 1,200 lines");
  await press(page, () => line(page, 1200));
  await page.click("button", "First line");
  await press(page, () => line(page, 1), null, { shiftKey: true });
  await page.press("c");
  await page.sees("Copied 1,200 lines");
  assert.equal(page.copied[0]!.split("\n").length, 1201);
});

test("what is not answered is said", async (t) => {
  const page = console(t, lines(["first", "second"]));
  await press(page, () => line(page, 1));
  const held = page.server.hold("data/tasks/t/log.json");
  await page.press("c");
  (await page.arrived(held)).fail();
  await page.sees("Not done. The server does not answer");
});

test("a run without a log says so, until it has a line", async (t) => {
  const all: LogLine[] = [];
  const page = console(t, all);
  await page.sees("has written no line yet");
  await page.live();
  all.push(...lines(["first"]));
  page.server.tell("log", { task: "t", count: 1 });
  await has(page, () => line(page, 1), "first");
});

test("who reads is told of new lines, and led to them", async (t) => {
  const all = lines(Array.from({ length: 500 }, (_, n) => `step ${n} done`));
  const page = console(t, all);
  await page.until(() => line(page, 500));
  await page.live();
  all.push(...lines(["after the end"]));
  page.server.tell("log", { task: "t", count: 1 });
  await page.until(() => line(page, 501));
  await page.press("g", "g");
  await page.until(() => line(page, 1));
  all.push(...lines(["one", "more"]));
  page.server.tell("log", { task: "t", count: 2 });
  await page.click("button", "2 new lines");
  await page.until(() => line(page, 503));
  assert.equal(page.all("button", "new lines").length, 0);
});

test("a screen reader hears how many lines came, again and again", async (t) => {
  const all = lines(["first"]);
  const page = console(t, all);
  await has(page, () => line(page, 1), "first");
  await page.live();
  async function come(count: number): Promise<void> {
    all.push(...lines(Array.from({ length: count }, (_, n) => `more ${n}`)));
    page.server.tell("log", { task: "t", count });
    await page.pass(1000);
  }
  await come(1);
  await come(4);
  await page.pass(10_000);
  await page.sees("5 new lines in the console");
  await come(2);
  await page.pass(11_000);
  await page.sees("2 new lines in the console");
});

test("hits are counted, stepped through, and shown alone", async (t) => {
  const all = lines(Array.from({ length: 9 }, (_, n) => (n % 3 ? `step ${n}` : `loss ${n}`)));
  const page = console(t, all);
  await page.until(() => line(page, 9));
  const bar = page.in("toolbar", "Console");
  await bar.in("searchbox", "Search in the log").fill("loss");
  await bar.has("3 hits");
  await bar.in("button", "Next hit").click();
  await bar.has("1 of 3 hits");
  await bar.in("button", "Hit before").click();
  await bar.has("3 of 3 hits");
  assert.equal(line(page, 7)?.dataset["chosen"], "");
  await bar.in("button", "Only hits").click();
  await bar.has("3 of 9 lines");
  await page.until(() => line(page, 2) === null);
  await page.until(() => page.address.includes("q=loss&only=1"));
});

test("what the console shows is remembered", async (t) => {
  const page = console(t, lines(["first"]));
  const number = (): string => textOf(line(page, 1)?.querySelector("span") ?? null);
  await page.until(() => number() === "1");
  await page.click("button", "What the console shows");
  await page.click("menuitemradio", "Line numbers");
  await page.until(() => number() !== "1");
  const kept = page.window.localStorage.getItem("viewer.console");
  assert.equal((JSON.parse(kept ?? "{}") as { numbers?: boolean }).numbers, false);
});
