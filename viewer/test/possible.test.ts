import assert from "node:assert/strict";
import { test } from "node:test";

import { whyNot, whyNotEdited, type ActionName } from "../src/pages/run/possible";

const ACTIONS: readonly ActionName[] = [
  ...(["clone", "enqueue", "dequeue", "abort", "reset", "publish", "move", "archive", "restore", "delete"] as const),
];

function possible(status: string, ...system_tags: string[]): string {
  return ACTIONS.filter((action) => whyNot(action, { status, system_tags }) === null).join(" ");
}

test("what may be done in each status", () => {
  assert.equal(possible("created"), "clone enqueue move archive delete");
  assert.equal(possible("queued"), "clone dequeue abort reset move archive");
  assert.equal(possible("in_progress"), "clone abort move archive");
  assert.equal(possible("completed"), "clone reset publish move archive");
  assert.equal(possible("failed"), "clone enqueue reset publish move archive");
  assert.equal(possible("stopped"), "clone enqueue reset publish move archive");
  assert.equal(possible("published"), "clone move archive");
  assert.equal(possible("completed", "archived"), "clone reset publish move restore delete");
});

test("only drafts are edited", () => {
  assert.equal(whyNotEdited({ status: "created" }), null);
  assert.match(whyNotEdited({ status: "published" })!, /published/);
  assert.match(whyNotEdited({ status: "completed" })!, /Clone or reset/);
});
