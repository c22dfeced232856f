/** Access keys and logins of who is signed in. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import { open } from "../harness/open";
import type { Page } from "../harness/page";
import { FakeServer } from "../harness/server";

interface Key {
  access_key: string;
  label?: string | null;
  scopes?: string[];
  expires?: string;
}

/** The settings of an administrator with the key ADMIN and two other logins. */
function settings(
  t: TestContext,
  keys: Key[] = [{ access_key: "ADMIN" }],
): { page: Page; server: FakeServer; keys: Key[] } {
  const login = (id: string, current = false) => ({
    id,
    last_used: "2026-01-15T11:00:00Z",
    address: id,
    agent: "a",
    worker: "",
    current,
  });
  let logins = [login("here", true), login("there"), login("far")];
  const server = new FakeServer({
    "auth.get_credentials": () => ({ credentials: structuredClone(keys) }),
    "auth.create_credentials": ({ body }) => {
      const key = { access_key: `KEY${keys.length}`, ...body };
      keys.push(key);
      return { credentials: { ...key, secret_key: "secret" } };
    },
    "users.get_sessions": () => ({ sessions: logins }),
    "users.end_sessions": ({ body }) => {
      if (body["others"]) logins = logins.filter((one) => one.current);
      return {};
    },
    "users.get_all": () => ({ users: [{ id: "me", name: "Me", role: "admin" }] }),
  });
  return { page: open(t, "/settings", server), server, keys };
}

test("a key is made with a scope and an end", async (t) => {
  const { page, server } = settings(t);
  await page.fill("textbox", "Label of a new key", "nightly");
  await page.fill("combobox", "It allows", "read");
  await page.fill("combobox", "It ends", "30");
  await page.click("button", "Make a key");
  await page.in("dialog").has("only now");
  await page.press("Escape");
  assert.deepEqual(server.bodies("auth.create_credentials"), [
    { label: "nightly", scopes: ["read"], expiration_sec: 30 * 86_400 },
  ]);
  await page.in("row").with("KEY1").has("read");
  await page.in("row").with("ADMIN").has("everything");
});

test("a key that has expired says so", async (t) => {
  const { page } = settings(t, [
    { access_key: "OLD", scopes: ["read"], expires: "2026-01-14T12:00:00Z" },
    { access_key: "NEW", scopes: ["read"], expires: "2026-01-16T12:00:00Z" },
  ]);
  await page.in("row").with("OLD").has("read, expired on ");
  await page.in("row").with("NEW").has("read, until ");
});

test("all other logins are ended", async (t) => {
  const { page } = settings(t);
  const logins = page.in("region", "Logins");
  await page.until(() => logins.in("row").count === 4);
  await logins.in("button", "End all others").click();
  await page.until(() => logins.in("row").count === 2);
  await logins.has("this one");
});

test("a key is made once by a double click and the next label stays", async (t) => {
  const { page, server } = settings(t);
  const held = server.hold("auth.create_credentials");
  await page.fill("textbox", "Label of a new key", "only one");
  await page.in("button", "Make a key").doubleClick();
  const answer = await page.arrived(held);
  await page.fill("textbox", "Label of a new key", "the next");
  answer.answer();
  await page.in("dialog").has("only now");
  await page.press("Escape");
  await page.in("dialog").gone();
  assert.equal(page.in("textbox", "Label of a new key").value(), "the next");
  assert.equal(held.length, 1);
});

test("the second click of a double one does not close the dialog with the secret", async (t) => {
  const { page } = settings(t);
  await page.click("button", "Make a key");
  const dialog = page.in("dialog");
  await dialog.has("only now");
  await dialog.click({ detail: 2 });
  assert.equal(dialog.count, 1);
  await dialog.click();
  await dialog.gone();
});

test("a question that finds no server gives up no other", async (t) => {
  const { page, server } = settings(t);
  const held = server.hold("auth.get_credentials");
  const failed = server.hold("users.get_sessions");
  const answer = await page.arrived(held);
  (await page.arrived(failed)).fail();
  (await page.arrived(failed, 2)).answer(); // everything is asked once more
  await page.sees("this one");
  assert.ok(!answer.isGivenUp);
  answer.answer();
  await page.in("row").with("ADMIN").element();
});
