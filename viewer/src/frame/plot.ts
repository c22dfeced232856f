/** Understands figures as runs report them: Plotly's JSON, or anything else. Pure: page and frame both use it. */

import type { Colours } from "./messages";
import { plainArray } from "./typed";

type Fields = Readonly<Record<string, unknown>>;

/** A figure of Plotly, of which nothing is known but its outline. */
export interface Figure {
  readonly data: readonly Fields[];
  readonly layout: Fields;
  readonly frames: readonly unknown[];
}

/** How a reported plot is shown. */
export type Plot =
  | { readonly kind: "table"; readonly title: string; readonly tables: readonly Table[] }
  /** Pictures alone, such as those of matplotlib: the page shows them without Plotly. */
  | { readonly kind: "pictures"; readonly title: string; readonly sources: readonly string[] }
  | { readonly kind: "figure"; readonly text: string; readonly height: number; readonly images: readonly string[] }
  /** No figure: what was reported, as text. */
  | { readonly kind: "text"; readonly text: string };

export interface Table {
  readonly heads: readonly string[];
  /** Rows of cells, as text. Numbers are aligned by their column. */
  readonly rows: readonly (readonly string[])[];
  /** Whether a column has numbers only. */
  readonly numbers: readonly boolean[];
}

/** The page does not look into longer figures: the frame reads them alone. */
const LONGEST_READ = 4 * 2 ** 20;
const HEIGHT = 380;
const LEAST_HEIGHT = 120;
const MOST_HEIGHT = 1400;

/** Whoever sets the colour of the paper, but not that of the text, expects Plotly's dark text. */
const LIGHT: Colours = { dark: false, page: "#fff", text: "#2a3f5f", soft: "#596273", line: "#e1e5ed" };

/** Traces that the smaller bundle of Plotly draws. */
const CARTESIAN = new Set([
  ...["scatter", "bar", "box", "heatmap", "histogram", "histogram2d", "histogram2dcontour", "image", "pie", "contour"],
  ...["scatterternary", "violin"],
]);
/** Traces and layers that need outlines or tiles of maps, which are on other hosts. */
const MAPS = /^(scattergeo|choropleth|(choropleth|density|scatter)map(box)?)$/;

/** What to show for a plot's `plot_str`. */
export function plotOf(text: string): Plot {
  if (text.length > LONGEST_READ) return { kind: "figure", text, height: HEIGHT, images: [] };
  const figure = figureOf(text);
  if (!figure) return { kind: "text", text };
  const tables = tablesOf(figure);
  if (tables) return { kind: "table", title: titleOf(figure.layout), tables };
  const images = imagesOf(figure.layout);
  if (!figure.data.length && images.length) return { kind: "pictures", title: titleOf(figure.layout), sources: images };
  return {
    kind: "figure",
    text,
    height: heightOf(figure.layout),
    images: images.filter((one) => !/^data:/i.test(one)),
  };
}

/** The figure that a text has as JSON; null if it has none. */
export function figureOf(text: string): Figure | null {
  const value = parsedFigure(text);
  const outline = Array.isArray(value) ? { data: value } : isFields(value) ? value : {};
  const { data, layout, frames } = outline as Fields;
  if (!Array.isArray(data) && !isFields(layout)) return null;
  return {
    data: Array.isArray(data) ? data.filter(isFields).map((trace) => readable(modern(trace))) : [],
    layout: isFields(layout) ? modern(layout) : {},
    frames: Array.isArray(frames) ? frames : [],
  };
}

/** Types of traces that Plotly has no more, and what draws the same. */
const RENAMED: Readonly<Record<string, string>> = { heatmapgl: "heatmap", pointcloud: "scattergl" };
/** `layout.scene.xaxis.title` and `trace.marker.colorbar.title` are the deepest titles. */
const DEEPEST_TITLE = 3;

/**
 * A part of a figure as Plotly takes it today: since its version 3, `title: "Loss"` is `title: {text: "Loss"}`. The SDK
 * and older files have the old form.
 */
function modern(part: Fields, depth = 0): Fields {
  const result: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(part)) {
    if (name === "title" && typeof value === "string") result[name] = { text: value, ...fontOf(part) };
    else if (isFields(value) && depth < DEEPEST_TITLE && name !== "template") result[name] = modern(value, depth + 1);
    else result[name] = value;
  }
  const type = depth === 0 ? RENAMED[String(part["type"])] : undefined;
  return type ? { ...result, type } : result;
}

function fontOf(part: Fields): Fields {
  return isFields(part["titlefont"]) ? { font: part["titlefont"] } : {};
}

/** A table whose columns are plain arrays, which Plotly needs there. Other traces may have typed ones. */
function readable(trace: Fields): Fields {
  if (trace["type"] !== "table") return trace;
  const part = (name: string): object =>
    isFields(trace[name]) ? { [name]: { ...trace[name], values: columnsOf(trace[name]) } } : {};
  return { ...trace, ...part("header"), ...part("cells") };
}

function columnsOf(part: Fields): unknown {
  const values = plainArray(part["values"]);
  return Array.isArray(values) ? values.map(plainArray) : values;
}

/** JSON, also as Python writes it: with NaN and Infinity, which become null. Undefined if it is no JSON. */
export function parsedFigure(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    if (!/NaN|Infinity/.test(text)) return undefined;
    try {
      // An unfinished text is matched, too, so that no character is looked at twice.
      return JSON.parse(
        text.replace(/"(?:[^"\\]|\\.)*(?:"|\\?$)|-?\b(?:NaN|Infinity)\b/gs, (one) => (one[0] === '"' ? one : "null")),
      );
    } catch {
      return undefined;
    }
  }
}

/** Which bundle of Plotly draws a figure. */
export function bundleOf(figure: Figure): "few" | "all" {
  const plain = figure.data.every(({ type }) => type === undefined || CARTESIAN.has(String(type)));
  return plain && !figure.frames.length ? "few" : "all";
}

/** Whether a figure is a map: its ground is not shown, as it would come from other hosts. */
export function isMap(figure: Figure): boolean {
  return figure.data.some(({ type }) => MAPS.test(String(type)));
}

/** The layout in the colours of the page. What the figure says of its own colours stays. */
export function themed(layout: Fields, colours: Colours): Record<string, unknown> {
  const template = isFields(layout["template"]) ? layout["template"] : {};
  const ofTemplate = isFields(template["layout"]) ? template["layout"] : {};
  const { width: _, height: __, ...rest } = layout;
  const own: Fields = isUsual(ofTemplate) ? { colorway: ofTemplate["colorway"] } : ofTemplate;
  const paper = rest["paper_bgcolor"] ?? own["paper_bgcolor"];
  const ground = typeof paper === "string" && !isTransparent(paper) ? { ...LIGHT, page: paper } : colours;
  return {
    margin: { l: 56, r: 24, t: titleOf(layout) ? 48 : 20, b: 44 },
    ...rest,
    autosize: true,
    template: { ...template, layout: merged(usual(ground), own) },
  };
}

function isTransparent(colour: string): boolean {
  return /^(transparent|(rgb|hsl)a\(.*,\s*0(\.0*)?\s*\)|#[0-9a-f]{3}0|#[0-9a-f]{6}00)$/i.test(colour.trim());
}

/** Plotly's own template is in every figure that plotly.py makes, so nobody chose its white and light blue. */
function isUsual(ofTemplate: Fields): boolean {
  return ofTemplate["paper_bgcolor"] === "white" && /^#e5ecf6$/i.test(String(ofTemplate["plot_bgcolor"]));
}

function usual(colours: Colours): Fields {
  const axis = { gridcolor: colours.line, linecolor: colours.line, zerolinecolor: colours.line, automargin: true };
  const space = {
    gridcolor: colours.line,
    linecolor: colours.line,
    zerolinecolor: colours.line,
    showbackground: false,
  };
  const round = {
    bgcolor: colours.page,
    angularaxis: { gridcolor: colours.line },
    radialaxis: { gridcolor: colours.line },
  };
  return {
    paper_bgcolor: colours.page,
    plot_bgcolor: colours.page,
    font: { color: colours.text, family: "system-ui, sans-serif", size: 12 },
    title: { font: { size: 14 }, x: 0.02, xanchor: "left" },
    xaxis: axis,
    yaxis: axis,
    scene: { xaxis: space, yaxis: space, zaxis: space },
    polar: round,
    geo: { bgcolor: colours.page, lakecolor: colours.page, landcolor: colours.line },
    hoverlabel: { font: { family: "system-ui, sans-serif", size: 12 }, align: "left", namelength: 60 },
    legend: { bgcolor: "rgba(0,0,0,0)" },
  };
}

/** `over` laid over `under`, in all depths. */
function merged(under: Fields, over: Fields): Record<string, unknown> {
  const result: Record<string, unknown> = { ...under };
  for (const [name, value] of Object.entries(over)) {
    if (value === undefined || name === "__proto__") continue;
    const before = result[name];
    result[name] = isFields(before) && isFields(value) ? merged(before, value) : value;
  }
  return result;
}

/** The title of a figure as text; "" without one. */
export function titleOf(layout: Fields): string {
  const { title } = layout;
  const text = isFields(title) ? title["text"] : title;
  return typeof text === "string" ? plain(text) : "";
}

function heightOf(layout: Fields): number {
  const { height } = layout;
  return typeof height === "number" && height > 0 ? Math.min(Math.max(height, LEAST_HEIGHT), MOST_HEIGHT) : HEIGHT;
}

function imagesOf(layout: Fields): string[] {
  const images = Array.isArray(layout["images"]) ? layout["images"] : [];
  const sources = images.map((one: unknown) => (isFields(one) ? one["source"] : null));
  return [...new Set(sources.filter((one): one is string => typeof one === "string" && one !== ""))];
}

/** The tables of a figure that has only tables. */
function tablesOf(figure: Figure): Table[] | null {
  if (!figure.data.length || !figure.data.every(({ type }) => type === "table")) return null;
  return figure.data.map((trace) => {
    const heads = valuesOf(trace["header"]).map((one) => (Array.isArray(one) ? one.map(cell).join(" ") : cell(one)));
    const columns = valuesOf(trace["cells"]).map((one) => (Array.isArray(one) ? one : [one]));
    const rows = Math.max(0, ...columns.map((one) => one.length));
    return {
      heads: columns.map((_, at) => heads[at] ?? ""),
      rows: Array.from({ length: rows }, (_, row) => columns.map((column) => cell(column[row]))),
      numbers: columns.map((column) => column.length > 0 && column.every(isNumber)),
    };
  });
}

function valuesOf(part: unknown): readonly unknown[] {
  const values = isFields(part) ? part["values"] : null;
  return Array.isArray(values) ? values : [];
}

function isNumber(value: unknown): boolean {
  return (
    typeof value === "number" ||
    value === null ||
    (typeof value === "string" && value.trim() !== "" && !Number.isNaN(+value))
  );
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? plain(value) : typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Plotly's texts may have `<b>`, `<br>` and such: the text without them. */
export function plain(text: string): string {
  return text.replace(/<br\s*\/?>/gi, "\n").replace(/<\/?(b|i|u|s|em|strong|sub|sup|span|a|extra)(\s[^<>]*)?>/gi, "");
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
