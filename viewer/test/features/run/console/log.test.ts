import assert from "node:assert/strict";
import { test } from "node:test";

import { Finder } from "../../../../src/features/run/console/finding";
import { Log } from "../../../../src/features/run/console/log";
import { MOST_ROWS, UNWRAPPED } from "../../../../src/features/run/console/rows";

/** A log of some messages, as a server answers it. The beginning of each message is its position. */
class Served {
  constructor(public messages: string[]) {
    globalThis.fetch = ((address: string) =>
      Promise.resolve(this.#answer(new URL(address, "http://server")))) as typeof fetch;
  }

  /** Called once, when the lines have been counted. */
  counted: (() => void) | null = null;

  #answer({ pathname, searchParams }: URL): Response {
    if (pathname.endsWith("/log/line")) {
      const line = Math.max(
        0,
        this.messages.findIndex((msg) => msg.slice(0, 50) === searchParams.get("position")),
      );
      const answer = Response.json({ line, total: this.messages.length });
      this.counted?.();
      this.counted = null;
      return answer;
    }
    const one = searchParams.get("line");
    const first = Number(one ?? searchParams.get("offset"));
    const longest = Number(searchParams.get("longest"));
    const lines = this.messages.slice(first, first + Number(searchParams.get("limit") ?? 1)).map((msg, n) => ({
      ...{ line: first + n, position: msg.slice(0, 50), timestamp: 0, worker: "w", level: null, iter: null },
      ...{ msg: msg.slice(0, longest), length: msg.length },
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

/** A log whose rows are all here. */
async function whole(messages: string[], anchor: { top: number }): Promise<Log> {
  new Served(messages);
  const log: Log = new Log("task", () => log.want(0, log.rows));
  log.anchor = { top: () => anchor.top, shift: (rows) => (anchor.top += rows) };
  await log.grow(new AbortController().signal);
  await until(() =>
    messages.every((_, line) => log.rowOf(line) === log.rows || log.row(log.rowOf(line)) !== undefined),
  );
  return log;
}

const bar = (done: number): string => `${done}%|█ | ${done}/1000 [00:01<00:09,  9.90it/s]`;

test("states of a bar between other lines fold into the last one, across pages", async () => {
  const messages = Array.from({ length: 600 }, (_, n) => (n % 2 ? `step ${n}` : bar(n)));
  const log = await whole(messages, { top: 0 });
  assert.equal(log.rows, 301);
  assert.deepEqual([log.row(0)?.msg, log.row(299)?.msg, log.row(300)?.msg], ["step 1", bar(598), "step 599"]);
  assert.deepEqual([log.foldedInto(298), log.foldedInto(299), log.foldedInto(300)], [0, 299, 0]);
  log.reveal(100);
  assert.equal(log.row(log.rowOf(100))?.msg, bar(100));
  assert.deepEqual([log.foldedInto(log.rowOf(100)), log.foldedInto(log.rowOf(598))], [50, 248]);
  log.unfold(log.rowOf(598));
  assert.equal(log.rows, 550);
  log.setShape(false, UNWRAPPED);
  assert.equal(log.rows, 600);
  log.close();
});

test("a wrapped line has as many rows as its message needs, and the line at the top stays there", async () => {
  const anchor = { top: 100 };
  const messages = Array.from({ length: 300 }, (_, n) => (n % 3 ? `step ${n}` : `step ${n} `.padEnd(25, "x")));
  messages[50] = "one\ntwo\nthree";
  const log = await whole(messages, anchor);
  assert.equal(log.rows, 300 + 2);
  log.setShape(true, 10);
  assert.equal(log.rows, 300 + 100 * 2 + 2);
  assert.equal(log.row(Math.floor(anchor.top))?.msg, "step 100");
  assert.deepEqual(
    [log.at(log.rowOf(99)), log.at(log.rowOf(99) + 2)],
    [
      { line: 99, part: 0 },
      { line: 99, part: 2 },
    ],
  );
  assert.deepEqual(
    [50, 51, 52].map((line) => log.heightAt(log.rowOf(line))),
    [3, 3, 1],
  );
  log.setShape(true, UNWRAPPED);
  assert.deepEqual([log.rows, anchor.top], [300 + 2, 102]);
  log.close();
});

/** A log with a message of many rows, more than come with other lines, between two short ones. */
function withLong(end = ""): Promise<Log> {
  const long = Array.from({ length: 400 }, (_, n) => `row ${n} of many`).join("\n") + end;
  return whole(["before", long, "after"], { top: 0 });
}

test("a message of many rows shows some, and all when it is unfolded", async () => {
  const log = await withLong();
  assert.equal(log.rows, 1 + MOST_ROWS + 1);
  const line = log.row(1)!;
  assert.equal(log.hiddenIn(line), Infinity);
  await log.unfoldLine(line);
  assert.deepEqual([log.rows, log.hiddenIn(line), log.isUnfolded(line)], [1 + 400 + 1, 0, true]);
  assert.equal(log.messageOf(log.row(300)!).row(299, log.columns, [])[0]?.text, "row 299 of many");
  assert.equal(log.row(401)?.msg, "after");
  log.foldLine(line);
  assert.equal(log.rows, 1 + MOST_ROWS + 1);
  log.close();
});

test("a message that is too long says in one more row that this is not all", async () => {
  const log = await withLong("x".repeat(200_000));
  await log.unfoldLine(log.row(1)!);
  assert.ok(log.heightAt(1) > 400 + 90);
  assert.equal(log.messageOf(log.row(1)!).rows(log.columns), log.heightAt(1) - 1);
  log.close();
});

test("earlier states of a row are shown when it is unfolded", async () => {
  const log = await whole(["0%\r50%\r100%\ndone"], { top: 0 });
  assert.deepEqual([log.rows, log.hiddenIn(log.row(0)!)], [2, 2]);
  await log.unfoldLine(log.row(0)!);
  assert.equal(log.rows, 4);
  log.close();
});

test("a hit leads to its row, also in a part of the message that has to be unfolded", async () => {
  const log = await withLong();
  const at = (search: string): number | null => log.rowOfHit(1, new Finder(search, false, () => undefined));
  assert.equal(at("row 7 of"), 1 + 7);
  assert.equal(log.rows, 1 + MOST_ROWS + 1);
  assert.equal(at("row 321 of"), null);
  await until(() => log.rows > 400);
  assert.equal(at("row 321 of"), 1 + 321);
  assert.equal(at("what the browser does not find"), 1);
  assert.equal(log.rowOfHit(1, null), 1);
  log.close();
});

test("a line that is gone when it is unfolded stays as it is, and says so", async () => {
  const log = await withLong();
  const line = log.row(1)!;
  new Served(["other", "others"]);
  await log.unfoldLine(line);
  assert.match(String(log.error?.message), /another number/);
  assert.ok(!log.isUnfolded(line));
  log.close();
});
