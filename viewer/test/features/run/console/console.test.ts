import assert from "node:assert/strict";
import { test } from "node:test";

import { PLAIN, pieces, plain, type Style } from "../../../../src/features/run/console/ansi";
import { Heights } from "../../../../src/features/run/console/heights";
import {
  allStates,
  barOf,
  isOnlyBars,
  lastStates,
  ONLY_BARS,
  overtakenBy,
} from "../../../../src/features/run/console/progress";

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
  assert.deepEqual(styled(`${ESC}[38;2;1;22;255mx${ESC}[39my`), [
    ["x", { fore: "#0116ff" }],
    ["y", {}],
  ]);
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

test("all states of a row can be read", () => {
  assert.equal(allStates("0%\r100%\r\ndone\rend\n"), "0%\n100%\ndone\nend\n");
});

test("states of bars are known", () => {
  assert.deepEqual(barOf("train:  10%|█         | 10/100 [00:01<00:09,  9.90it/s, loss=0.3]"), {
    bar: "train:|100",
    done: 10,
  });
  assert.deepEqual(barOf("\r  0%|          | 0/469 [00:00<?, ?it/s]"), { bar: "|469", done: 0 });
  assert.deepEqual(barOf("model.bin:  45%|████▌     | 1.5M/3.3M [00:01<00:01, 1.1MB/s]"), {
    bar: "model.bin:|3.3M",
    done: 1_500_000,
  });
  assert.deepEqual(barOf("steps: 120it [00:10, 12.00it/s]"), { bar: "steps: |it", done: 120 });
  assert.equal(barOf("epoch 3 | loss 0.1 | acc 0.9"), null);
  assert.equal(barOf("[12:00:00] 10/100"), null);
});

test("a message is only a bar if nothing else is in it", () => {
  const bar = " 50%|█ | 5/10 [00:01<00:01, 5it/s]";
  const isOnlyBarsForTheServer = (text: string): boolean => new RegExp(ONLY_BARS).test(text);
  const named = [
    "rows: 120it [00:10, 12.0it/s]",
    `mirror, arrow:${bar}`,
    `err, erro, eerr:${bar}`,
    bar.replace("5it/s", "5it/s, error=0.1"),
  ];
  const bars = [bar, `${bar}\r${bar}\n${ESC}[A`, `\r${bar}\n\n`, `${ESC}[32mtrain:${bar}${ESC}[0m`, ...named];
  const errors = [
    `Error${bar}`,
    `RuntimeError: no space left${bar}`,
    `train:${bar}\rERROR ${bar}`,
    "errors: 120it [00:10, 12.0it/s]",
  ];
  const others = [
    "",
    "\n",
    "Error",
    `${bar}CUDA out of memory`,
    `Error\r${bar}`,
    `${bar}\nError`,
    `Error\n${bar}`,
    ...errors,
  ];
  for (const is of [isOnlyBars, isOnlyBarsForTheServer]) {
    for (const text of bars) assert.ok(is(text), JSON.stringify(text));
    for (const text of others) assert.ok(!is(text), JSON.stringify(text));
  }
});

test("a state is overtaken by the next one of the same bar, also if other lines stand between them", () => {
  const bar = (done: number, total = 100): string => `${done}%|█ | ${done}/${total} [00:01<00:09,  9.90it/s]`;
  const lines = [bar(10), bar(20), bar(20), "saved", bar(30), bar(5), bar(6, 50), bar(7)].map(barOf);
  assert.deepEqual(overtakenBy(lines, 200), [1, 2, 4, -1, -1, 7, -1, -1]);
  assert.deepEqual(overtakenBy(lines, 1), [1, 2, -1, -1, -1, -1, -1, -1]);
});

test("rows and lines lead to each other, whichever lines have no row or several", () => {
  const heights = new Heights();
  const all = Array<number>(3000).fill(1);
  let random = 7;
  const next = (most: number): number => (random = (random * 48271) % 2147483647) % most;
  for (let turn = 0; turn < 40; turn++) {
    const first = next(turn < 20 ? 600 : 2000);
    for (let line = first; line < first + next(700); line++) {
      all[line] = [0, 0, 1, 3, 20][next(5)]!;
      heights.put(line, all[line]!);
    }
    let row = 0;
    all.forEach((height, line) => {
      assert.equal(heights.heightOf(line), height);
      assert.equal(heights.rowOf(line), row);
      for (let part = 0; part < height; part++) assert.deepEqual(heights.at(row++), { line, part });
    });
    assert.equal(heights.rows(all.length), row);
  }
});
