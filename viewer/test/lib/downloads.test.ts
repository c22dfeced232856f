import assert from "node:assert/strict";
import { test } from "node:test";

import { filePlace, sized } from "../../src/lib/downloads";

const CASES: readonly (readonly [string | null, object])[] = [
  ["http://runs.example:8081/a b", { kind: "here", address: "/data/file?url=http%3A%2F%2Fruns.example%3A8081%2Fa+b" }],
  ["http://127.0.0.1:8081/a", { kind: "here", address: "/data/file?url=http%3A%2F%2F127.0.0.1%3A8081%2Fa" }],
  [
    "https://other.example/a",
    {
      kind: "web",
      address: "/data/file?url=https%3A%2F%2Fother.example%2Fa",
      url: "https://other.example/a",
      host: "other.example",
    },
  ],
  [null, { kind: "none" }],
  ["", { kind: "none" }],
];

for (const [uri, place] of CASES) {
  test(`${uri} is found`, () => assert.deepEqual(filePlace(uri, "runs.example"), place));
}

test("what a browser can't reach is said in words", () => {
  const words = [
    "s3://bucket/a",
    "gs://b/a",
    "file:///tmp/a",
    "/tmp/a",
    "odd://x",
    "javascript://%0aalert(1)",
    "http://",
  ].map((uri) => {
    const place = filePlace(uri, "h");
    return place.kind === "away" ? place.why : place.kind;
  });
  assert.match(words[0]!, /Amazon S3/);
  assert.match(words[1]!, /Google/);
  assert.match(words[2]!, /folder of the machine/);
  assert.match(words[3]!, /folder of the machine/);
  assert.match(words[4]!, /odd:\/\//);
  assert.match(words[5]!, /javascript:\/\//);
  assert.match(words[6]!, /not valid/);
});

test("sizes have three digits", () => {
  assert.deepEqual([0, 999, 1000, 48_211_004, 123_456, 999_600].map(sized), [
    "0 B",
    "999 B",
    "1 kB",
    "48.2 MB",
    "123 kB",
    "1 MB",
  ]);
});
