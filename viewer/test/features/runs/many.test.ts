import assert from "node:assert/strict";
import { test } from "node:test";

import { api } from "../../../src/api/client";
import type { ChangeManyResponse } from "../../../src/api/endpoints";
import { cloneMany, doToMany, outcomeText, readChosen } from "../../../src/features/runs/many";

interface Asked {
  readonly endpoint: string;
  readonly body: {
    readonly id?: string[];
    readonly ids?: string[];
    readonly task?: string;
    readonly page_size?: number;
  };
}

/** Answer requests as a server would: `answer` gives the data, or the status of an error. Returns what was asked. */
function serve(answer: (asked: Asked) => object | number): Asked[] {
  const all: Asked[] = [];
  globalThis.fetch = ((address: string, { body }: { body: string }) => {
    const asked = { endpoint: address.slice(1), body: JSON.parse(body) as Asked["body"] };
    all.push(asked);
    const data = answer(asked);
    const status = typeof data === "number" ? data : 200;
    return Promise.resolve(
      Response.json(status === 200 ? { data } : { meta: { result_msg: "no such run" } }, { status }),
    );
  }) as typeof fetch;
  return all;
}

const deleteMany = (ids: readonly string[]): Promise<ChangeManyResponse> => api("tasks.delete_many", { ids });
const IDS = Array.from({ length: 250 }, (_, n) => `run${n}`);

test("chosen runs are read by one request, in the order in which they were chosen", async () => {
  const asked = serve(() => ({
    tasks: [
      { id: "b", name: "B", status: "created" },
      { id: "a", name: "A", status: "failed" },
    ],
  }));
  assert.deepEqual(
    (await readChosen(["a", "gone", "b"])).map(({ name }) => name),
    ["A", "B"],
  );
  assert.deepEqual(
    asked.map(({ body }) => body.page_size),
    [3],
  );
});

test("very many chosen runs are read by few requests", async () => {
  const asked = serve(({ body }) => ({ tasks: body.id!.map((id) => ({ id, name: id, status: "created" })) }));
  assert.equal((await readChosen(Array.from({ length: 25_000 }, (_, n) => String(n)))).length, 25_000);
  assert.deepEqual(
    asked.map(({ body }) => body.page_size),
    [10_000, 10_000, 5000],
  );
});

test("many runs are changed a hundred at a time, and what the server refuses is told with its reason", async () => {
  const refused = { id: "run7", error: { msg: "published models=1" } };
  serve(({ body }) => ({ succeeded: [], failed: body.ids!.includes("run7") ? [refused] : [] }));
  const tried: number[] = [];
  const outcome = await doToMany(IDS, deleteMany, (count) => tried.push(count));
  assert.deepEqual(tried, [100, 200, 250]);
  assert.deepEqual(outcome, {
    done: 249,
    failed: [{ id: "run7", reason: "published models=1" }],
    untried: [],
    problem: null,
  });
  assert.equal(outcomeText("Deleted", outcome), "Deleted 249 of 250 runs");
});

test("a request that fails as a whole ends it, and the rest is named", async () => {
  serve(({ body }) => (body.ids!.includes("run100") ? 500 : {}));
  const outcome = await doToMany(IDS, deleteMany);
  assert.deepEqual([outcome.done, outcome.untried, outcome.problem], [100, IDS.slice(100), "no such run"]);
  assert.equal(outcomeText("Deleted", outcome), "Deleted 100 of 250 runs");
});

test("one run that cannot be cloned does not stop the others", async () => {
  const asked = serve(({ body }) => (body.task === "run1" ? 400 : { id: "new" }));
  const outcome = await cloneMany(IDS.slice(0, 3).map((id) => ({ id, name: id, status: "created" })));
  assert.deepEqual(outcome, { done: 2, failed: [{ id: "run1", reason: "no such run" }], untried: [], problem: null });
  assert.equal(asked.length, 3);
});
