import assert from "node:assert/strict";
import { test } from "node:test";

import { Log } from "../src/console/log";

/** A log of some messages, as a server answers it. Each message is its own position. */
class Served {
  constructor(public messages: string[]) {
    globalThis.fetch = ((address: string) => Promise.resolve(this.#answer(new URL(address, "http://server")))) as typeof fetch;
  }

  /** Called once, when the lines have been counted. */
  counted: (() => void) | null = null;

  #answer({ pathname, searchParams }: URL): Response {
    if (pathname.endsWith("/log/line")) {
      const line = Math.max(0, this.messages.indexOf(searchParams.get("position") ?? ""));
      const answer = Response.json({ line, total: this.messages.length });
      this.counted?.();
      this.counted = null;
      return answer;
    }
    const first = Number(searchParams.get("offset"));
    const lines = this.messages.slice(first, first + Number(searchParams.get("limit"))).map((msg, n) => ({
      ...{ line: first + n, position: msg, timestamp: 0, worker: "w", level: null, iter: null },
      ...{ msg, length: msg.length },
    }));
    return Response.json(lines, { headers: { "x-total-count": String(this.messages.length) } });
  }
}

/** Wait until something holds. */
async function until(holds: () => boolean): Promise<void> {
  for (let turn = 0; !holds(); turn++) {
    assert.ok(turn < 1000, "it never came to hold");
    await new Promise((done) => setTimeout(done, 1));
  }
}

test("lines that come late, while pages are asked for again, leave the line at the top in sight", async () => {
  const server = new Served(Array.from({ length: 100 }, (_, n) => `step ${n}`));
  let top = 30;
  const log = new Log("task", () => log.want(0, 60));
  log.anchor = { top: () => top, shift: (rows) => (top += rows) };
  const { signal } = new AbortController();
  await log.grow(signal);
  await until(() => log.row(30)?.msg === "step 30");

  server.messages.push("step 100");
  server.counted = () => {
    const late = Array.from({ length: 20 }, (_, n) => `late ${n}`);
    server.messages.splice(5, 0, ...late); // the page is asked for again only after this
  };
  await log.grow(signal);
  await until(() => log.row(5)?.msg === "late 0");
  assert.equal(top, 50);
  assert.equal(log.row(top)?.msg, "step 30");
  assert.equal(log.total, 121);
  log.close();
});
