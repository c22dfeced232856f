import assert from "node:assert/strict";
import { test } from "node:test";

import { type AuditLine, answerOf, whatOf, whoOf } from "../../../src/features/audit/lines";

const LINE: AuditLine = {
  ...{
    n: 1,
    time: "2026-11-24T15:02:11.484Z",
    action: "tasks.delete",
    user: "u1",
    name: "alice",
    key: null,
    address: "192.0.2.7",
  },
  ...{ what: { task: "t1", force: true }, code: 200, times: 1 },
};

test("who it was is a name, an id, nobody whom the server knows, or the server itself", () => {
  assert.equal(whoOf(LINE), "alice");
  assert.equal(whoOf({ ...LINE, name: null }), "u1");
  assert.equal(whoOf({ ...LINE, name: null, user: null }), "unknown");
  assert.equal(whoOf({ ...LINE, action: "server.start", name: null, user: null, address: "" }), "the server");
});

test("what was acted on is said field by field", () => {
  assert.equal(whatOf(LINE), "task: t1, force: true");
  assert.equal(whatOf({ ...LINE, what: { tasks: ["a", "b"], more: { x: 1 } } }), 'tasks: a b, more: {"x":1}');
  assert.equal(whatOf({ ...LINE, what: null }), "");
});

test("what happened again says how often", () => {
  assert.equal(answerOf(LINE), "200");
  assert.equal(answerOf({ ...LINE, code: 401, times: 12 }), "401, 12 times");
});
