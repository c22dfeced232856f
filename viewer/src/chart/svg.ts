/** A chart as the text of an SVG. Pure. */

import type { Line } from "./line";
import { DOT, dots, drawBand, drawLine, type Plane, placing, SvgPath } from "./paths";

export interface Style {
  readonly title: string;
  readonly dark: boolean;
  readonly page: string;
  readonly text: string;
  readonly grid: string;
  /** Pixels of the plane a pixel of the picture. */
  readonly pixels: number;
  /** Marks of the axes: value and text. */
  readonly splits: { readonly x: readonly Split[]; readonly y: readonly Split[] };
}

export type Split = readonly [value: number, text: string];

const HEAD = 24;
const ROW = 16;

export function svgOf(lines: readonly Line[], plane: Plane, style: Style): string {
  const { pixels, splits } = style;
  const smaller = (scale: Plane["x"], shift: number): Plane["x"] => ({
    ...scale,
    start: scale.start / pixels + shift,
    size: scale.size / pixels,
  });
  const inside: Plane = { x: smaller(plane.x, 0), y: smaller(plane.y, HEAD) };
  const { x, y } = inside;
  const [left, right, bottom, top] = [x.start, x.start + x.size, y.start, y.start + y.size];
  const [toX, toY] = [placing(x), placing(y)];
  const height = bottom + 28 + ROW * lines.length;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${right + 12}" height="${height}" font-family="system-ui, sans-serif" font-size="11">`,
    `<rect width="100%" height="100%" fill="${escaped(style.page)}"/>`,
    `<text x="8" y="16" font-size="13" font-weight="600" fill="${escaped(style.text)}">${escaped(style.title)}</text>`,
    `<clipPath id="area"><rect x="${left}" y="${top}" width="${x.size}" height="${bottom - top}"/></clipPath>`,
  ];
  const mark = (x1: number, y1: number, x2: number, y2: number): string =>
    `<path d="M${x1} ${y1}L${x2} ${y2}" stroke="${escaped(style.grid)}"/>`;
  const label = (at: number, under: number, anchor: string, text: string): string =>
    `<text x="${at}" y="${under}" text-anchor="${anchor}" fill="${escaped(style.text)}">${escaped(text)}</text>`;
  for (const [value, text] of splits.x)
    parts.push(mark(toX(value), top, toX(value), bottom), label(toX(value), bottom + 15, "middle", text));
  for (const [value, text] of splits.y)
    parts.push(mark(left, toY(value), right, toY(value)), label(left - 6, toY(value) + 4, "end", text));
  parts.push(`<g clip-path="url(#area)" fill="none" stroke-linejoin="round">`);
  for (const line of lines) parts.push(...behind(line, inside, style.dark));
  for (const line of lines) parts.push(inFront(line, inside, style.dark));
  parts.push("</g>");
  for (const line of lines) parts.push(...dotsOf(line, inside, style.dark));
  lines.forEach(({ name, colour }, number) => {
    const under = bottom + 34 + ROW * number;
    parts.push(
      `<path d="M${left} ${under - 4}h14" stroke="${colour[style.dark ? 1 : 0]}" stroke-width="2"/>`,
      label(left + 20, under, "start", name),
    );
  });
  return `${parts.join("\n")}\n</svg>\n`;
}

/** The extremes of a group's runs as an outline, the band, and what was smoothed. */
function behind({ colour: colours, points, faint, outer }: Line, plane: Plane, dark: boolean): string[] {
  const colour = colours[dark ? 1 : 0];
  const [outline, band, line] = [new SvgPath(), new SvgPath(), new SvgPath()];
  if (outer) drawBand(outline, outer, plane);
  drawBand(band, faint ?? points, plane);
  if (faint) drawLine(line, faint, plane);
  const found: string[] = [];
  if (String(outline)) found.push(`<path d="${outline}" stroke="${colour}" stroke-opacity="0.3"/>`);
  if (String(band))
    found.push(`<path d="${band}" fill="${colour}" fill-opacity="0.16" stroke="${colour}" stroke-opacity="0.5"/>`);
  if (String(line)) found.push(`<path d="${line}" stroke="${colour}" stroke-opacity="0.35"/>`);
  return found;
}

function inFront({ colour, points, dashed }: Line, plane: Plane, dark: boolean): string {
  const path = new SvgPath();
  drawLine(path, points, plane);
  return `<path d="${path}" stroke="${colour[dark ? 1 : 0]}" stroke-width="1.5"${dashed ? ' stroke-dasharray="5 3"' : ""}/>`;
}

function dotsOf({ colour, points }: Line, plane: Plane, dark: boolean): string[] {
  const fill = colour[dark ? 1 : 0];
  return dots(points, plane, 1).map(
    ([x, y]) => `<circle cx="${x.toFixed(2)}" cy="${y.toFixed(2)}" r="${DOT}" fill="${fill}"/>`,
  );
}

/** XML has no characters below U+0020 but tabs and line ends. */
function escaped(text: string): string {
  return text
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "�")
    .replace(/[&<>"]/g, (character) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[character]!);
}
