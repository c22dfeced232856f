import assert from "node:assert/strict";
import { test } from "node:test";

import { type ActionName, leftOut, split, whyNot, whyNotEdited } from "../../src/lib/possible";

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

test("of many runs, an action takes those for which it is possible and says why it leaves out the others", () => {
  const run = (status: string, ...system_tags: string[]): { status: string; system_tags: string[] } => ({
    status,
    system_tags,
  });
  const runs = [run("created"), run("published"), run("in_progress"), run("published", "archived"), run("in_progress")];
  const { can, others } = split("delete", runs);
  assert.deepEqual(can, [runs[0], runs[3]]);
  assert.match(
    leftOut("delete", others),
    /^Left out: 3 runs \(2 running, 1 published\)\. Only drafts and archived runs/,
  );
  assert.match(
    leftOut("abort", [run("created")]),
    /^Left out: 1 run \(1 draft\)\. Only runs that are running or queued/,
  );
  assert.equal(leftOut("abort", []), "");
});
