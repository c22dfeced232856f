import assert from "node:assert/strict";
import { test } from "node:test";

import { choose, chosenIn, iterationOf } from "../../src/features/run/chosen";
import { fromGuest } from "../../src/frame/messages";
import { bundleOf, figureOf, isMap, plain, plotOf, themed } from "../../src/frame/plot";

const DARK = { dark: true, page: "#111", text: "#eee", soft: "#999", line: "#333" };

test("a table becomes text, and columns of numbers are known", () => {
  const cells = {
    values: [
      ["cat", "<b>dog</b>"],
      [0.5, null],
    ],
  };
  const plot = plotOf(
    JSON.stringify({ data: [{ type: "table", header: { values: [["class"], ["recall"]] }, cells }] }),
  );
  assert.equal(plot.kind, "table");
  const [table] = plot.kind === "table" ? plot.tables : [];
  assert.deepEqual(table, {
    heads: ["class", "recall"],
    rows: [
      ["cat", "0.5"],
      ["dog", ""],
    ],
    numbers: [false, true],
  });
});

/** A typed array, as plotly.py writes it. */
const typed = (dtype: string, array: ArrayBufferView, shape?: unknown): object => ({
  dtype,
  bdata: Buffer.from(array.buffer as ArrayBuffer).toString("base64"),
  ...(shape === undefined ? {} : { shape }),
});

const tableOf = (values: unknown, header: object = { values: ["a", "b"] }): unknown => {
  const plot = plotOf(JSON.stringify({ data: [{ type: "table", header, cells: { values } }] }));
  return plot.kind === "table" ? plot.tables[0] : plot;
};

test("tables have the numbers of typed arrays: of all columns, of one, and of the heads", () => {
  const rows = [
    ["1", "0.5"],
    ["2", "1.5"],
    ["3", "-2.25"],
  ];
  const numbers = [true, true];
  assert.deepEqual(tableOf(typed("f8", new Float64Array([1, 2, 3, 0.5, 1.5, -2.25]), "2, 3")), {
    heads: ["a", "b"],
    rows,
    numbers,
  });
  const columns = [[1, 2, 3], typed("f8", new Float64Array([0.5, 1.5, -2.25]))];
  assert.deepEqual(tableOf(columns, { values: typed("i2", new Int16Array([7, -8]), 2) }), {
    heads: ["7", "-8"],
    rows,
    numbers,
  });
});

test("typed arrays of each kind are read, and NaN is an empty cell", () => {
  const column = (dtype: string, array: ArrayBufferView): unknown =>
    (tableOf([typed(dtype, array)]) as { rows: string[][] }).rows.map(([one]) => one);
  assert.deepEqual(column("f4", new Float32Array([0.1, 1 / 3, 16777216, NaN])), ["0.1", "0.33333334", "16777216", ""]);
  assert.deepEqual(column("f8", new Float64Array([1 / 3, 1e-9, Infinity])), ["0.3333333333333333", "1e-9", ""]);
  assert.deepEqual(column("i1", new Int8Array([-1, 2])), ["-1", "2"]);
  assert.deepEqual(column("u1", new Uint8Array([200])), ["200"]);
  assert.deepEqual(column("u2", new Uint16Array([65535])), ["65535"]);
  assert.deepEqual(column("i4", new Int32Array([-70000])), ["-70000"]);
  assert.deepEqual(column("u4", new Uint32Array([4e9])), ["4000000000"]);
});

test("typed arrays that are none cost only themselves", () => {
  const empty = { heads: [], rows: [], numbers: [] };
  const six = new Float64Array(6);
  for (const values of [
    typed("f8", six, "2, 4"),
    typed("f8", six, "1, 2, 3"),
    typed("f8", six, "-2, -3"),
    typed("f8", six, "a"),
  ]) {
    assert.deepEqual(tableOf(values), empty);
  }
  for (const values of [
    typed("toString", six),
    typed("f8", new Uint8Array(7)),
    { dtype: "f8", bdata: "%" },
    { bdata: null },
  ]) {
    assert.deepEqual(tableOf(values), empty);
  }
  assert.deepEqual(tableOf(typed("f8", new Float64Array(), "1000000000, 0")), empty);
  assert.deepEqual(tableOf(typed("f8", new Float64Array(), "2, 0")), {
    heads: ["a", "b"],
    rows: [],
    numbers: [false, false],
  });
});

test("a table beside other traces has plain columns, as Plotly needs them; other traces stay as they are", () => {
  const values = typed("f8", new Float64Array([1, 2, 3, 4]), "2, 2");
  const bar = { type: "bar", y: typed("i1", new Int8Array([1])) };
  const figure = figureOf(JSON.stringify({ data: [{ type: "table", cells: { values } }, bar] }));
  assert.deepEqual(figure?.data, [
    {
      type: "table",
      cells: {
        values: [
          [1, 2],
          [3, 4],
        ],
      },
    },
    bar,
  ]);
});

test("a figure of pictures alone needs no Plotly; their order stays", () => {
  const images = [{ source: "http://a/1.png" }, { source: "data:image/png;base64,AA" }, null, 7];
  const plot = plotOf(JSON.stringify({ data: [], layout: { images, title: { text: "Two" } } }));
  assert.deepEqual(plot, { kind: "pictures", title: "Two", sources: ["http://a/1.png", "data:image/png;base64,AA"] });
});

test("NaN as Python writes it is no obstacle, and texts that say it stay", () => {
  const figure = figureOf('{"data": [{"y": [NaN, -Infinity, 1], "text": "NaN \\" Infinity"}], "layout": {}}');
  assert.deepEqual(figure?.data, [{ y: [null, null, 1], text: 'NaN " Infinity' }]);
});

test("what is no figure is shown as text", () => {
  for (const text of ["hello", "7", "null", '"text"', "{}", '{"data": 1}', ""]) assert.equal(plotOf(text).kind, "text");
});

test("odd figures have an outline all the same", () => {
  assert.deepEqual(figureOf('{"data": [1, null, {"type": "bar"}], "layout": []}'), {
    data: [{ type: "bar" }],
    layout: {},
    frames: [],
  });
  const tall = plotOf('{"data": [{"type": "bar"}], "layout": {"height": 1e9}}');
  assert.equal(tall.kind === "figure" && tall.height, 1400);
});

test("titles of older figures are as Plotly takes them today", () => {
  const colorbar = { title: "c" };
  const old = { title: "a", titlefont: { size: 9 }, xaxis: { title: "b" }, yaxis: { title: { text: "d" } } };
  const figure = figureOf(JSON.stringify({ data: [{ type: "heatmapgl", marker: { colorbar } }], layout: old }))!;
  assert.deepEqual(figure.data, [{ type: "heatmap", marker: { colorbar: { title: { text: "c" } } } }]);
  assert.deepEqual(figure.layout["title"], { text: "a", font: { size: 9 } });
  assert.deepEqual(figure.layout["xaxis"], { title: { text: "b" } });
  assert.deepEqual(figure.layout["yaxis"], { title: { text: "d" } });
});

test("the small bundle draws what it can, and the full one the rest", () => {
  const of = (type?: string): string => bundleOf({ data: [{ type }], layout: {}, frames: [] });
  assert.deepEqual([of(), of("heatmap"), of("scatter3d"), of("toString")], ["few", "few", "all", "all"]);
  const map = (type: string): boolean => isMap({ data: [{ type }], layout: {}, frames: [] });
  assert.deepEqual(["choroplethmapbox", "scattermap", "scattergeo", "heatmap", "treemap"].map(map), [
    true,
    true,
    true,
    false,
    false,
  ]);
});

test("figures take the colours of the page, unless they have their own", () => {
  const ground = (layout: object): unknown => {
    const made = themed(layout as Record<string, unknown>, DARK);
    const usual = (made["template"] as { layout: Record<string, unknown> }).layout;
    return [made["paper_bgcolor"] ?? usual["paper_bgcolor"], (usual["font"] as { color: string }).color];
  };
  const usual = { layout: { paper_bgcolor: "white", plot_bgcolor: "#E5ECF6", font: { color: "#2a3f5f" } } };
  assert.deepEqual(ground({}), ["#111", "#eee"]);
  assert.deepEqual(ground({ template: usual }), ["#111", "#eee"]);
  assert.deepEqual(ground({ paper_bgcolor: "#fff" }), ["#fff", "#2a3f5f"]);
  assert.deepEqual(ground({ paper_bgcolor: "rgba(0, 0, 0, 0)" }), ["rgba(0, 0, 0, 0)", "#eee"]);
  assert.deepEqual(ground({ template: { layout: { paper_bgcolor: "black", font: { color: "lime" } } } }), [
    "black",
    "lime",
  ]);
  assert.equal(themed({ width: 9e9, height: 9e9 }, DARK)["width"], undefined);
});

test("a layout cannot change what all objects have", () => {
  themed(
    JSON.parse('{"template": {"layout": {"__proto__": {"hacked": 1}, "constructor": {"prototype": {"hacked": 1}}}}}'),
    DARK,
  );
  assert.equal(({} as Record<string, unknown>)["hacked"], undefined);
});

test("texts lose Plotly's markup, and nothing else", () => {
  assert.equal(plain("<b>a</b><br>b < c <script>"), "a\nb < c <script>");
});

test("only messages of the protocol are heard", () => {
  const bytes = new ArrayBuffer(4);
  assert.deepEqual(fromGuest({ kind: "ready", more: 1 }), { kind: "ready" });
  assert.deepEqual(fromGuest({ kind: "escape", id: 3 }), { kind: "escape" });
  assert.deepEqual(fromGuest({ kind: "drawn", id: 3 }), { kind: "drawn", id: 3 });
  assert.deepEqual(fromGuest({ kind: "failed", id: 3, reason: "x".repeat(999) }), {
    kind: "failed",
    id: 3,
    reason: "x".repeat(300),
  });
  assert.deepEqual(fromGuest({ kind: "failed", id: 3, reason: {} }), { kind: "failed", id: 3, reason: "" });
  assert.deepEqual(fromGuest({ kind: "png", id: 3, bytes }), { kind: "png", id: 3, bytes });
  const odd = [null, 1, "ready", [], {}, { kind: "drawn" }, { kind: "drawn", id: "3" }, { kind: "draw", id: 3 }];
  for (const one of [...odd, { kind: "png", id: 3, bytes: "data:text/html,x" }, { kind: "png", id: 3 }]) {
    assert.equal(fromGuest(one), null);
  }
});

test("the address says which iteration each metric shows", () => {
  const chosen = chosenIn(new URLSearchParams("iter=300&at=loss@x@200&at=other@newest&at=bad&at=worse@1e9"));
  assert.equal(iterationOf(chosen, "loss@x"), 200);
  assert.equal(iterationOf(chosen, "other"), null);
  assert.equal(iterationOf(chosen, "any"), 300);
  assert.deepEqual(choose(chosen, "any", 100).at, ["loss@x@200", "other@newest", "any@100"]);
  assert.deepEqual(choose(chosen, "loss@x", 300).at, ["other@newest"]);
  assert.deepEqual(chosenIn(new URLSearchParams({ at: choose(chosen, "any", null).at.at(-1)! })).of.get("any"), null);
});
