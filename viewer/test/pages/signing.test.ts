/** Signing in: what is said when that fails, what stays, and what other tabs hear. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";

import { open } from "../harness/open";
import type { Page } from "../harness/page";
import { FakeServer, type Question, Refusal } from "../harness/server";

const GUEST = { enabled: true, username: "guest", password: "guest" };

/** The sign-in page of a server with passwords and guests, on which `login` answers. */
function visitor(
  t: TestContext,
  login: (question: Question) => unknown,
  address = "/sign-in",
): { page: Page; server: FakeServer } {
  const server = new FakeServer({
    "users.get_current_user": () => {
      throw new Refusal(401, "nobody");
    },
    "login.supported_modes": () => ({ basic: { enabled: true, guest: GUEST }, provider: {} }),
    "auth.login": login,
    "auth.login_by_link": login,
  });
  return { page: open(t, address, server), server };
}

function refuse(): never {
  throw new Refusal(401, "no");
}

async function signIn(page: Page): Promise<void> {
  await page.fill("textbox", "Name", "Zoë");
  await page.fill("textbox", "Password", "pässwörd");
  await page.click("button", "Sign in");
}

test("who is not signed in is asked to, and is then where they wanted to be", async (t) => {
  const { page } = visitor(t, () => ({}), "/projects/p?q=mine");
  await signIn(page);
  await page.until(() => page.left.length);
  assert.deepEqual(page.left, ["/projects/p?q=mine"]);
});

test("a wrong password is said in words", async (t) => {
  const { page } = visitor(t, refuse);
  await signIn(page);
  await page.sees("No user has this name and password");
  assert.equal(page.in("textbox", "Name").value(), "Zoë");
  assert.equal(page.in("textbox", "Password").value(), "");
  assert.deepEqual(page.left, []);
});

test("what is typed stays if the server does not answer", async (t) => {
  const { page, server } = visitor(t, () => ({}));
  const held = server.hold("auth.login");
  await signIn(page);
  (await page.arrived(held)).fail();
  await page.sees("The server does not answer");
  assert.equal(page.in("textbox", "Password").value(), "pässwörd");
  server.release("auth.login");
  await page.click("button", "Sign in");
  await page.until(() => page.left.length);
});

test("a link that was used says so, and leaves no secret in the address", async (t) => {
  const { page, server } = visitor(t, refuse, "/sign-in?next=/search#link=secret");
  await page.sees("has been used, or is older than ten minutes");
  assert.deepEqual(server.bodies("auth.login_by_link"), [{ link: "secret" }]);
  assert.equal(page.address, "/sign-in?next=/search");
});

test("too many attempts say when to try again", async (t) => {
  const answer = (): Response => Response.json({}, { status: 429, headers: { "retry-after": "2" } });
  const { page } = visitor(t, answer, "/sign-in#link=guess");
  await page.sees("Too many attempts have failed. Try again in 2 seconds");
  const button = (await page.get("button", "Sign in")) as HTMLButtonElement;
  assert.ok(button.disabled);
  await page.pass(2100);
  assert.ok(!button.disabled);
});

for (const next of ["//evil.example/x", "http://evil.example/", "javascript:alert(1)", "/\\evil.example"]) {
  test(`after signing in nobody is on another server: ${next}`, async (t) => {
    const { page } = visitor(t, () => ({}), `/sign-in?${new URLSearchParams({ next })}`);
    await signIn(page);
    await page.until(() => page.left.length);
    assert.deepEqual(page.left, ["/"]);
  });
}

test("guests look around without a name", async (t) => {
  const { page } = visitor(t, () => ({}));
  await page.click("button", "Look around as a guest");
  await page.until(() => page.left.length);
});

/** A page of somebody who is signed in, until `who` says otherwise. */
function signedIn(t: TestContext): { page: Page; server: FakeServer; who: { id: string | null } } {
  const who: { id: string | null } = { id: "me" };
  const server = new FakeServer({
    "users.get_current_user": () => {
      if (who.id === null) throw new Refusal(401, "nobody");
      return { user: { id: who.id, name: who.id, role: "user", company: { id: "c", name: "C" } } };
    },
    "login.supported_modes": () => ({ basic: { enabled: true, guest: { enabled: false } }, provider: {} }),
    "reports.get_all_ex": () => ({ tasks: [] }),
  });
  return { page: open(t, "/reports?q=mine", server), server, who };
}

test("a sign-out in another tab ends the page, and what is typed meanwhile stays", async (t) => {
  const { page, who } = signedIn(t);
  await page.get("button", "me menu");
  who.id = null;
  page.hear(null);
  await page.fill("textbox", "Password", "pässw");
  await page.settle();
  assert.equal(page.all("button", "me menu").length, 0);
  assert.equal(page.in("textbox", "Password").value(), "pässw");
  assert.deepEqual(page.left, []);
  who.id = "Zoë"; // signs in by another tab
  page.hear("Zoë");
  await page.until(() => page.left.length);
  assert.deepEqual(page.left, ["/reports?q=mine"]);
});

test("a page becomes that of who signs in by another tab, but not for the same user", async (t) => {
  const { page } = signedIn(t);
  await page.get("button", "me menu");
  page.hear("me");
  await page.settle();
  assert.deepEqual(page.left, []);
  page.hear("guest");
  await page.until(() => page.left.length);
  assert.deepEqual(page.left, ["reload"]);
});

test("a sign-out that is heard late ends nothing", async (t) => {
  const { page } = signedIn(t);
  await page.get("button", "me menu");
  page.hear(null); // but the server knows who it is: somebody has signed in since
  await page.until(() => page.left.length);
  assert.deepEqual(page.left, ["/reports?q=mine"]);
});
