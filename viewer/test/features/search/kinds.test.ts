import assert from "node:assert/strict";
import { test } from "node:test";

import { columnsFound, foundOf, LISTED, questionFor } from "../../../src/features/search/kinds";
import { pathOf } from "../../../src/routes";

test("every question is bounded, and asks for the newest if there is no text", () => {
  for (const kind of LISTED) {
    const { body } = questionFor(kind, "  ", 11);
    assert.equal(body["page_size"], 11);
    assert.equal("search_text" in body, false);
    assert.equal(questionFor(kind, " resnet lr ", 11).body["search_text"], "resnet lr");
  }
});

test("data sets and pipelines are tasks of hidden projects", () => {
  const { endpoint, body } = questionFor("datasets", "x", 1);
  assert.equal(endpoint, "tasks.get_all_ex");
  assert.deepEqual(body["system_tags"], ["dataset"]);
  assert.equal(body["search_hidden"], true);
});

test("parameters and metrics lead to tables of runs", () => {
  const facts = {
    parameters: ["hyperparams.Args/lr", "hyperparams.General/model/lr"],
    curves: ["loss/train", "lr/group 0"],
  };
  const names = (text: string): string[] =>
    columnsFound(facts, text).map(({ title, notes }) => [title, ...notes].join(" · "));
  assert.deepEqual(names(" LR "), ["lr · parameter · Args", "model/lr · parameter · General", "lr/group 0 · metric"]);
  assert.deepEqual(names("train loss"), ["loss/train · metric"]);
  assert.deepEqual(names("args lr=0.1"), ["lr = 0.1 · parameter · Args"]);
  assert.deepEqual([names(""), names("hyperparams"), names("last")], [[], [], []]);
  const [byValue] = columnsFound(facts, "lr=a=b");
  assert.equal(byValue?.with?.["where"], '[["hyperparams.Args/lr","is","a=b"]]');
  assert.equal(columnsFound(facts, "train")[0]?.with?.["sort"], "-last:loss/train");
});

test("what was found leads to its page", () => {
  const run = {
    id: "t",
    name: "run",
    status: "in_progress",
    project: { id: "p", name: "Vision/.datasets/coco" },
    tags: ["a"],
    system_tags: ["archived"],
  };
  const found = foundOf("runs", run);
  assert.equal(pathOf(found.to), "/projects/p/tasks/t/overview");
  assert.deepEqual(found.notes, ["Vision/coco", "running", "archived", "#a"]);
  assert.equal(pathOf(foundOf("models", { id: "m", project: null }).to), "/projects/*/models/m");
  assert.equal(pathOf(foundOf("projects", { id: "p", name: "P" }).to), "/projects/p");
  assert.equal(pathOf(foundOf("reports", { id: "r" }).to), "/reports/r");
});
