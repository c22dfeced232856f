import assert from "node:assert/strict";
import { test } from "node:test";

import { pieces, plain, PLAIN, type Style } from "../src/console/ansi";
import { Folds } from "../src/console/folds";
import { barOf, isOnlyBars, lastStates, overtaken } from "../src/console/progress";

const ESC = "\x1b";
/** The texts of the pieces, each with what is not plain about its style. */
function styled(text: string, before: Style = PLAIN): [string, Partial<Style>][] {
  return pieces(text, before).pieces.map((piece) => [
    piece.text,
    Object.fromEntries(Object.entries(piece.style).filter(([name, value]) => value !== PLAIN[name as keyof Style])),
  ]);
}

test("plain text is one piece", () => {
  assert.deepEqual(styled("epoch 3\tloss 0.1"), [["epoch 3\tloss 0.1", {}]]);
  assert.deepEqual(styled(""), []);
});

test("16, 256 and true colours", () => {
  assert.deepEqual(styled(`a${ESC}[31mred${ESC}[1;92mgreen${ESC}[0mb`), [
    ["a", {}],
    ["red", { fore: 1 }],
    ["green", { fore: 10, bold: true }],
    ["b", {}],
  ]);
  assert.deepEqual(styled(`${ESC}[38;5;196;48;5;232mx`), [["x", { fore: "#ff0000", back: "#080808" }]]);
  assert.deepEqual(styled(`${ESC}[38;5;9mx`), [["x", { fore: 9 }]]);
  assert.deepEqual(styled(`${ESC}[38;2;1;22;255mx${ESC}[39my`), [["x", { fore: "#0116ff" }], ["y", {}]]);
  assert.deepEqual(styled(`${ESC}[3;4;9;7;2mx${ESC}[23;24;29;27;22my`), [
    ["x", { italic: true, underline: true, strike: true, inverse: true, dim: true }],
    ["y", {}],
  ]);
});

test("a style goes on in the next line", () => {
  const { after } = pieces(`${ESC}[33mwarning`);
  assert.deepEqual(styled("more", after), [["more", { fore: 3 }]]);
});

test("what is not about colours is dropped, and wrong sequences change nothing", () => {
  assert.equal(plain(`${ESC}[2J${ESC}[10;20Ha${ESC}]0;title\x07b${ESC}]8;;http://x${ESC}\\c${ESC}(Bd${ESC}`), "abcd");
  assert.deepEqual(styled(`${ESC}[38;5;999mx`), [["x", {}]]);
  assert.deepEqual(styled(`${ESC}[38mx`), [["x", {}]]);
  assert.deepEqual(styled(`${ESC}[38;2;999;1;mx`), [["x", { fore: "#ff0100" }]]);
  assert.deepEqual(styled("a\0b\x07\x7f"), [["a␀b␇␡", {}]]);
});

test("a bomb of escapes is read in time that grows with its length", () => {
  const bomb = `${ESC}[`.repeat(100_000) + `${ESC}]`.repeat(100_000) + `${ESC}[${"1;".repeat(100_000)}m`;
  assert.ok(pieces(bomb).pieces.length <= 200_000);
});

test("carriage returns are folded to the last state of each line", () => {
  assert.equal(lastStates("a\rb\rc"), "c");
  assert.equal(lastStates("0%\r100%\r"), "100%");
  assert.equal(lastStates("0%\r100%\n\rdone\n"), "100%\ndone\n");
  assert.equal(lastStates("plain\n"), "plain\n");
  assert.equal(lastStates(`half\r${ESC}[K`), "half");
});

test("states of bars are known", () => {
  assert.deepEqual(barOf("train:  10%|█         | 10/100 [00:01<00:09,  9.90it/s, loss=0.3]"), { bar: "train:|100", done: 10 });
  assert.deepEqual(barOf("\r  0%|          | 0/469 [00:00<?, ?it/s]"), { bar: "|469", done: 0 });
  assert.deepEqual(barOf("model.bin:  45%|████▌     | 1.5M/3.3M [00:01<00:01, 1.1MB/s]"), { bar: "model.bin:|3.3M", done: 1_500_000 });
  assert.deepEqual(barOf("steps: 120it [00:10, 12.00it/s]"), { bar: "steps: |it", done: 120 });
  assert.equal(barOf("epoch 3 | loss 0.1 | acc 0.9"), null);
  assert.equal(barOf("[12:00:00] 10/100"), null);
});

test("a message is only a bar if nothing else is in it", () => {
  const bar = " 50%|█ | 5/10 [00:01<00:01, 5it/s]";
  assert.ok(isOnlyBars(bar) && isOnlyBars(`${bar}\r${bar}\n${ESC}[A`));
  for (const text of ["", "Error", `${bar}CUDA out of memory`, `Error\r${bar}`, `${bar}\nError`]) assert.ok(!isOnlyBars(text), text);
});

test("a state is overtaken by the next one of the same bar only", () => {
  const bar = (done: number, total = 100): string => `${done}%|█ | ${done}/${total} [00:01<00:09,  9.90it/s]`;
  const lines = [bar(10), bar(20), bar(20), "saved", bar(30), bar(5), bar(6, 50), bar(7)];
  assert.deepEqual(overtaken(lines.map(barOf)), [true, true, false, false, false, false, false, false]);
});

test("rows and lines of folds lead to each other, whatever was folded in which order", () => {
  const folds = new Folds();
  const hidden = new Set<number>();
  let random = 7;
  const next = (most: number): number => (random = (random * 48271) % 2147483647) % most;
  for (let turn = 0; turn < 200; turn++) {
    const first = next(80);
    const marks = Array.from({ length: next(30) }, () => next(3) === 0);
    marks.forEach((is, n) => (is ? hidden.add(first + n) : hidden.delete(first + n)));
    folds.set(first, marks);
    assert.equal(folds.set(first, marks), false);
    assert.equal(folds.hidden, hidden.size);
    const shown = Array.from({ length: 120 }, (_, n) => n).filter((line) => !hidden.has(line));
    shown.forEach((line, row) => {
      assert.equal(folds.lineOf(row), line);
      assert.equal(folds.rowOf(line), row);
      const before = shown[row - 1] ?? -1;
      assert.equal(folds.foldedBefore(line), line - before - 1);
    });
    for (const line of hidden) assert.equal(folds.lineOf(folds.rowOf(line)), shown.find((one) => one > line));
  }
});
