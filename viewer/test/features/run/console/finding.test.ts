import assert from "node:assert/strict";
import { test } from "node:test";

import { PLAIN } from "../../../../src/features/run/console/ansi";
import { type Clock, Finder } from "../../../../src/features/run/console/finding";
import { Message } from "../../../../src/features/run/console/rows";

/** A clock on which each look takes so long; `turn` lets the next turn begin. */
class Ticking implements Clock {
  #now = 0;
  #waiting: (() => void)[] = [];

  constructor(private readonly step: number) {}

  readonly now = (): number => (this.#now += this.step);
  readonly later = (act: () => void): void => void this.#waiting.push(act);

  turn(): void {
    this.#now += 1000;
    for (const act of this.#waiting.splice(0)) act();
  }
}

function found(text: string, search: string, isRegex = true): string[] {
  const finder = new Finder(search, isRegex, () => undefined, new Ticking(0));
  const { spans, done } = finder.find(new Message(text, PLAIN));
  assert.ok(done);
  return spans.map(([from, end]) => text.slice(from, end));
}

test("texts are found in any case, expressions as they are written", () => {
  assert.deepEqual(found("Loss (a) LOSS", "loss", false), ["Loss", "LOSS"]);
  assert.deepEqual(found("a.b axb", "a.b", false), ["a.b"]);
  assert.deepEqual(found("Loss loss=3", "loss=\\d+"), ["loss=3"]);
  assert.deepEqual(found("abc", "x*"), []);
});

test("what is longer than a slice is searched to its end", () => {
  const noise = "step 1 went well, ".repeat(4000);
  assert.deepEqual(found(`${noise}loss=nan${noise}loss=inf`, "loss=(nan|inf)"), ["loss=nan", "loss=inf"]);
  for (let shift = 0; shift < 300; shift += 7) {
    const text = `${"y".repeat(20_000 + shift)}a12345b${"y".repeat(20_000)}`;
    assert.deepEqual(found(text, "a1\\d+.*5b"), ["a12345b"], String(shift));
  }
});

test("the beginning and the end of a message are no others than its own", () => {
  const long = "a".repeat(50_000);
  assert.deepEqual(found(long, "^aa"), ["aa"]);
  assert.deepEqual(found(`${long}b`, "ab$"), ["ab"]);
  assert.deepEqual(found(`${long} a`, "\\ba\\b"), ["a"]);
});

test("a search goes on in the next turn, and says so", () => {
  let turns = 0;
  const clock = new Ticking(1);
  const finder = new Finder("b", true, () => turns++, clock);
  const messages = Array.from({ length: 10 }, (_, n) => new Message(`${"a".repeat(50_000)}b${n}`, PLAIN));
  const all = (): number => messages.filter((message) => finder.find(message).done).length;
  assert.ok(all() < 10);
  let rounds = 0;
  for (; all() < 10; rounds++) {
    assert.ok(rounds < 100);
    clock.turn();
  }
  assert.equal(turns, rounds);
  clock.turn();
  assert.equal(turns, rounds, "nothing is left to search");
  assert.ok(messages.every((message) => finder.find(message).spans.length === 1));
});

test("a search that takes too long, or finds too much, is given up", () => {
  const slow = new Ticking(100);
  const finder = new Finder("a*b", true, () => undefined, slow);
  const long = new Message("a".repeat(200_000), PLAIN);
  for (let round = 0; !finder.find(long).done; round++) {
    assert.ok(round < 100);
    slow.turn();
  }
  assert.ok(finder.find(long).givenUp);
  const many = new Finder("a", false, () => undefined, new Ticking(0)).find(long);
  assert.ok(many.givenUp);
  assert.ok(!new Finder("a", false, () => undefined, new Ticking(0)).find(new Message("aa", PLAIN)).givenUp);
});

test("an expression that may take too long marks nothing", () => {
  const finder = new Finder("(a+)+$", true, () => undefined);
  assert.ok(finder.isUnable);
  assert.deepEqual(finder.find(new Message("aa", PLAIN)), { spans: [], done: true, givenUp: false });
});
