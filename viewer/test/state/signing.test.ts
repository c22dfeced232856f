import assert from "node:assert/strict";
import { test } from "node:test";

import { basic, cameBackWith, pathAfter } from "../../src/state/signing";

const ORIGIN = "http://127.0.0.1:8008";

test("after signing in one goes where one wanted to go", () => {
  for (const path of ["/", "/projects/*/tasks/t/output/log", "/projects?sort=name&q=a%2Fb#x", "/s/abc"]) {
    assert.equal(pathAfter(path, ORIGIN), path);
  }
});

test("nobody is sent to another server, or to sign in again", () => {
  const bad = [
    null,
    "",
    "projects",
    "//evil.example",
    "/\\evil.example",
    "/\t/evil.example",
    "http://evil.example/",
    "javascript:alert(1)",
    "/..//evil.example",
    "/.//evil.example",
    "//",
    "/sign-in?next=/x",
  ];
  for (const next of bad) assert.equal(pathAfter(next, ORIGIN), "/", String(next));
});

test("names and passwords of any characters are sent", () => {
  const text = Buffer.from(basic("Zoë", "pässwörd 🔑").slice(6), "base64").toString("utf8");
  assert.equal(text, "Zoë:pässwörd 🔑");
});

test("what a provider sends the browser back with is read, and nothing else is taken for it", () => {
  assert.deepEqual(cameBackWith("?code=c&state=s&iss=i&session_state=x"), { state: "s", code: "c", iss: "i" });
  assert.deepEqual(cameBackWith("?error=access_denied&error_description=no&state=s"), {
    state: "s",
    error: "access_denied",
  });
  for (const query of ["", "?next=/x", "?code=c", "?state=s", "?state=&code=c"])
    assert.equal(cameBackWith(query), null);
});
