/** What is typed into a search stays: while the page begins to look for it, and when the page is left at once. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import { open } from "../harness/open";
import type { Page } from "../harness/page";
import { FakeServer } from "../harness/server";

/** The page of all projects, of which there is one. */
function projects(t: TestContext): { page: Page; server: FakeServer } {
  const server = new FakeServer({
    "data/projects.json": () => [{ id: "p", name: "P", parent: null, tasks: 1 }],
    "data/projects/*/groups.json": () => [],
    "data/projects/*/tasks.json": () => [{ id: "t", name: "mine", status: "created", project: "p", last_update: null }],
    "models.get_all_ex": () => ({ models: [] }),
    "projects.get_all": () => ({ projects: [] }),
    "projects.get_all_ex": () => ({ projects: [] }),
  });
  return { page: open(t, "/", server), server };
}

/** Type a text, and do something at once, before any timer of the page. */
async function typeAnd(page: Page, then: () => void): Promise<void> {
  const field = (await page.get("searchbox", "Search projects")) as HTMLInputElement;
  field.value = "abc";
  field.dispatchEvent(new page.window.Event("input", { bubbles: true }) as unknown as Event);
  then();
}

for (const [target, name] of [
  ["document", "visibilitychange"],
  ["window", "pagehide"],
] as const) {
  test(`the address is written at once when the page is hidden or left: ${name}`, async (t) => {
    const { page } = projects(t);
    const event = new page.window.Event(name);
    await typeAnd(page, () => page.window[target].dispatchEvent(event));
    assert.equal(page.address, "/?q=abc");
  });
}

test("what is typed just before one leaves by a link is there when one goes back", async (t) => {
  const { page } = projects(t);
  const link = await page.get("link", "Models");
  await typeAnd(page, () => link.click());
  await page.until(() => page.address.startsWith("/models"));
  await page.back();
  assert.equal(page.address, "/?q=abc");
  const field = page.in("searchbox", "Search projects");
  await page.until(() => field.value() === "abc");
});

test("what is typed just before the page loads itself anew stays", async (t) => {
  const { page } = projects(t);
  await typeAnd(page, () => page.hear("other"));
  await page.until(() => page.left.includes("reload"));
  assert.equal(page.address, "/?q=abc");
});
