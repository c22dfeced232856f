/** The keyboard, the help that lists its keys, the focus after going somewhere, and the menu. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import { open } from "../harness/open";
import type { Page } from "../harness/page";
import { PARENT, parameters, RUN, serverOf } from "../harness/run";

function run(t: TestContext): Page {
  const { server } = serverOf({ ...PARENT, hyperparams: parameters({ lr: "1" }) });
  server.on({
    "data/projects.json": () => [],
    "data/projects/*/groups.json": () => [],
    "data/projects/*/tasks.json": () => [],
  });
  return open(t, `${RUN}/overview`, server);
}

const chosen = (page: Page): string | undefined =>
  page.all("tab").find((one) => one.getAttribute("aria-selected") === "true")?.textContent ?? undefined;

test("keys go to tabs and pages", async (t) => {
  const page = run(t);
  await page.get("heading", "mine");
  await page.press("4");
  await page.until(() => chosen(page) === "Plots");
  await page.press("g", "p");
  await page.until(() => page.address === "/projects");
});

test("help lists the keys of the page, which do nothing behind it", async (t) => {
  const page = run(t);
  await page.get("heading", "mine");
  await page.press("?");
  const dialog = page.in("dialog", "Keyboard");
  await dialog.has("Go to a tab");
  await page.press("4");
  await page.settle();
  assert.equal(chosen(page), "Overview");
  await page.press("Escape");
  await dialog.gone();
  await page.press("4");
  await page.until(() => chosen(page) === "Plots");
});

test("keys belong to who types", async (t) => {
  const page = run(t);
  const field = page.in("searchbox", "Search parameters");
  (await field.element()).focus();
  await page.type("2?gp/");
  assert.equal(field.value(), "2?gp/");
  assert.equal(chosen(page), "Overview");
  assert.equal(page.in("dialog").count, 0);
});

test("the focus is on the heading of the new page", async (t) => {
  const page = run(t);
  await page.click("link", "the parent");
  await page.until(() => page.in("heading", "the parent").hasFocus());
});

test("the menu is used with keys alone", async (t) => {
  const page = run(t);
  const menu = page.in("button", "Me menu");
  await menu.press("ArrowDown");
  await page.press("d");
  assert.ok(page.in("menuitemradio", "Dark").hasFocus());
  await page.press("Enter");
  await page.until(() => page.document.documentElement.dataset["theme"] === "dark");
  assert.ok(menu.hasFocus());
  await page.press("Enter");
  await page.get("menu");
  await page.press("Escape");
  await page.in("menu").gone();
  assert.ok(menu.hasFocus());
});
