import assert from "node:assert/strict";
import { test } from "node:test";

import { curvesOf } from "../../src/api/columns";

test("a block is read: one series with even x, one with its own", () => {
  const head = {
    columns: ["mean"],
    bytes: 4,
    series: [
      { metric: "loss", variant: "a", rows: 3, x: [0, 10] },
      { metric: "loss", variant: "b", rows: 3, x: null },
    ],
  };
  let text = JSON.stringify(head);
  while ((text.length + 4) % 8) text += " ";
  const header = new TextEncoder().encode(text);
  const content = new ArrayBuffer(4 + header.length + 16 + 24 + 16);
  new DataView(content).setUint32(0, header.length, true);
  new Uint8Array(content).set(header, 4);
  const start = 4 + header.length;
  new Float32Array(content, start, 3).set([1, 2, 3]);
  new Float64Array(content, start + 16, 3).set([5, 6, 9]);
  new Float32Array(content, start + 40, 3).set([4, 5, 6]);

  const [first, second, ...more] = curvesOf(content);
  assert.deepEqual([...first!.x], [0, 10, 20]);
  assert.deepEqual([...first!.columns["mean"]!], [1, 2, 3]);
  assert.deepEqual([...second!.x], [5, 6, 9]);
  assert.deepEqual([...second!.columns["mean"]!], [4, 5, 6]);
  assert.equal(more.length, 0);
});

test("a series that goes on in the next block is one curve", () => {
  const block = (x: number[], mean: Float32Array | Float64Array): Uint8Array => {
    let text = JSON.stringify({
      columns: ["mean"],
      bytes: mean.BYTES_PER_ELEMENT,
      series: [{ metric: "loss", variant: "a", rows: x.length, x: null }],
    });
    while ((text.length + 4) % 8) text += " ";
    const head = new TextEncoder().encode(text);
    const bytes = new Uint8Array(4 + head.length + 8 * x.length + mean.byteLength);
    new DataView(bytes.buffer).setUint32(0, head.length, true);
    bytes.set(head, 4);
    bytes.set(new Uint8Array(Float64Array.from(x).buffer), 4 + head.length);
    bytes.set(new Uint8Array(mean.buffer), 4 + head.length + 8 * x.length);
    return bytes;
  };
  const parts = [block([1, 2], Float32Array.of(5, 6)), block([4, 9], Float64Array.of(7, 1e300))];
  const content = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  content.set(parts[0]!);
  content.set(parts[1]!, parts[0]!.length);
  const [curve, ...more] = curvesOf(content.buffer);
  assert.deepEqual([more.length, curve!.rows], [0, 4]);
  assert.deepEqual([...curve!.x], [1, 2, 4, 9]);
  assert.deepEqual([...curve!.columns["mean"]!], [5, 6, 7, 1e300]);
});
