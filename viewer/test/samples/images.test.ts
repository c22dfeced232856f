import assert from "node:assert/strict";
import { test } from "node:test";

import { kindOf, nameOf, placeOfFile, whyNot } from "../../src/api/files";
import { atIteration, iterationsOf, nearest, seriesOf } from "../../src/samples/images";
import { zoomed } from "../../src/samples/zoom";

const row = (variant: string, iter: number, url: string | null) => ({ metric: "m", variant, iter, timestamp: 0, url });

test("files that were written over are not shown as older iterations", () => {
  const rows = [row("x", 4, "a"), row("x", 1, "a"), row("x", 2, "b"), row("x", 3, "c"), row("y", 9, null)];
  const series = seriesOf(rows, ["x", "y"]);
  assert.deepEqual(
    series.map(({ variant, images }) => [variant, images.map(({ iter, url }) => [iter, url])]),
    [
      [
        "x",
        [
          [2, "b"],
          [3, "c"],
          [4, "a"],
        ],
      ],
    ],
  );
});

test("an iteration shows what is there then, and the newest of each without one", () => {
  const series = seriesOf([row("x", 1, "a"), row("x", 3, "b"), row("y", 2, "c")], ["x", "y"]);
  assert.deepEqual(iterationsOf(series), [1, 2, 3]);
  assert.deepEqual(
    atIteration(series, null).map(({ url }) => url),
    ["b", "c"],
  );
  assert.deepEqual(
    atIteration(series, 1).map(({ url }) => url),
    ["a"],
  );
  assert.deepEqual([nearest([1, 2, 3], 9), nearest([2, 3], 1), nearest([1, 3], 2), nearest([], 1)], [3, 2, 1, null]);
});

test("a file's kind is told by its name, and its place by where it lies", () => {
  assert.deepEqual(["a.PNG?x=.mp3", "data:image/png;base64,", "b/c.wav", "v.webm#t", "r.html", "x"].map(kindOf), [
    "image",
    "image",
    "audio",
    "video",
    "html",
    "other",
  ]);
  assert.equal(placeOfFile("http://h:8081/a b.png"), "/data/file?url=http%3A%2F%2Fh%3A8081%2Fa+b.png");
  for (const url of ["s3://b/a.png", "file:///a.png", "javascript:alert(1)", "data:text/html,x", "a.png"]) {
    assert.equal(placeOfFile(url), null);
    assert.match(whyNot(url), /\.$/);
  }
  assert.equal(nameOf("http://h/a/%C3%BC%20b.png?token=x"), "ü b.png");
});

test("zooming keeps the point under the pointer, and ends where the picture fits", () => {
  const view = zoomed({ zoom: 1, x: 0, y: 0 }, 2, 100, -50);
  assert.deepEqual(view, { zoom: 2, x: -100, y: 50 });
  assert.deepEqual(zoomed(view, 0.1, 3, 4), { zoom: 1, x: 0, y: 0 });
  assert.equal(zoomed(view, 1e9, 0, 0).zoom, 40);
});
