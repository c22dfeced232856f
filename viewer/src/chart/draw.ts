/** Draws the lines of a chart on a canvas, within the axes of uPlot. */

import { shown } from "./align";
import type { Line } from "./line";
import { DOT, dots, drawArea, drawBand, drawEnvelope, drawLine, holes, type Plane } from "./paths";

export interface Frame {
  readonly plane: Plane;
  /** Device pixels a pixel of the page. */
  readonly pixels: number;
  readonly dark: boolean;
  /** The key of the line that the pointer is at: the others are drawn paler. */
  readonly focus: string | null;
  /** x of a moment that a link names. */
  readonly mark: number | null;
  readonly markColour: string;
}

/** How strong a band is, its edges, and a line behind another one. The edges are what makes a spike of a point seen. */
const BAND = 0.16;
const EDGE = 0.55;
const FAINT = 0.35;
const PALE = 0.25;
/** The extremes of a group's runs, behind another band. */
const OUTER = 0.3;

/**
 * Among more lines than these, areas of bands lie over each other and tell nothing: only their edges are drawn. Dense
 * lines are thin there: they can be told apart better, and take half as long. They have no dashes, which nobody could see
 * in a jagged line, and which take long.
 */
const MANY = 20;
/** The edges of a band among many go through the extremes of so many pixels each. */
const COARSE = 4;
/** Lines with more points than these a pixel are drawn thin: a thick jagged one takes twenty times as long. */
const DENSE = 0.3;

export function drawLines(context: CanvasRenderingContext2D, lines: readonly Line[], frame: Frame): void {
  const { x, y } = frame.plane;
  context.save();
  context.beginPath();
  context.rect(x.start, y.start + y.size, x.size, -y.size);
  context.clip();
  context.lineJoin = "bevel"; // round ones take longer
  const ordered = frame.focus === null ? lines : [...lines].sort((line) => (line.key === frame.focus ? 1 : -1));
  const many = lines.length > MANY;
  for (const line of ordered) drawBehind(context, line, frame, !many || line.key === frame.focus);
  for (const line of ordered) drawFront(context, line, frame, many && line.key !== frame.focus);
  if (frame.mark !== null) drawMark(context, frame.mark, frame);
  context.restore();
  for (const line of ordered) drawMarkers(context, line, frame);
  context.globalAlpha = 1;
}

/** The band, with its area or its edges alone, and what was smoothed. */
function drawBehind(context: CanvasRenderingContext2D, line: Line, frame: Frame, filled: boolean): void {
  const { pixels, plane } = frame;
  const points = line.faint ?? line.points;
  const strength = (line.faint ? 0.6 : 1) * strengthOf(line, frame);
  setColour(context, line, frame);
  context.setLineDash([]);
  context.lineWidth = pixels;
  if (line.outer) {
    const outer = new Path2D();
    drawBand(outer, line.outer, plane);
    context.globalAlpha = OUTER * strengthOf(line, frame);
    context.stroke(outer);
  }
  if (filled) {
    const area = new Path2D();
    drawArea(area, points, plane);
    context.globalAlpha = BAND * strength;
    context.fill(area);
  }
  const edges = new Path2D();
  if (filled) drawBand(edges, points, plane);
  else drawEnvelope(edges, points, plane, COARSE * pixels);
  context.globalAlpha = EDGE * strength;
  context.stroke(edges);
  if (line.faint) {
    const behind = new Path2D();
    drawLine(behind, line.faint, plane);
    context.globalAlpha = FAINT * strength;
    context.stroke(behind);
  }
}

function drawFront(context: CanvasRenderingContext2D, line: Line, frame: Frame, thin: boolean): void {
  const { pixels, plane } = frame;
  setColour(context, line, frame);
  context.globalAlpha = strengthOf(line, frame);
  const dense = isDense(line, frame);
  context.setLineDash(line.dashed && !(dense && thin) ? [5 * pixels, 3 * pixels] : []);
  const path = new Path2D();
  drawLine(path, line.points, plane);
  strokeLine(context, path, dense, thin, pixels);
  context.setLineDash([]);
}

/** Dots of points, and crosses of holes. They are whole also at the edges of the plane, as lines are not. */
function drawMarkers(context: CanvasRenderingContext2D, line: Line, frame: Frame): void {
  const { pixels, plane } = frame;
  setColour(context, line, frame);
  context.globalAlpha = strengthOf(line, frame);
  const round = new Path2D();
  for (const [x, y] of dots(line.points, plane, pixels)) {
    round.moveTo(x + DOT * pixels, y);
    round.arc(x, y, DOT * pixels, 0, 2 * Math.PI);
  }
  context.fill(round);
  drawHoles(context, line, frame);
}

/** A line of one and a half pixels; a dense one is made of two thin ones, half a pixel above each other, or of one. */
function strokeLine(
  context: CanvasRenderingContext2D,
  path: Path2D,
  dense: boolean,
  thin: boolean,
  pixels: number,
): void {
  context.lineWidth = (dense ? 1 : 1.5) * pixels;
  context.stroke(path);
  if (!dense || thin) return;
  context.translate(0, pixels / 2);
  context.stroke(path);
  context.translate(0, -pixels / 2);
}

function isDense({ points }: Line, { plane, pixels }: Frame): boolean {
  const [first, last] = shown(points.x, [plane.x.min, plane.x.max]);
  return (last - first) * pixels > DENSE * plane.x.size;
}

/** A cross at the upper edge for each bucket with NaN or infinities. */
function drawHoles(context: CanvasRenderingContext2D, line: Line, { plane, pixels }: Frame): void {
  const size = 3 * pixels;
  const middle = plane.y.start + plane.y.size + 2 * size;
  const path = new Path2D();
  for (const x of holes(line.faint ?? line.points, plane)) {
    path.moveTo(x - size, middle - size);
    path.lineTo(x + size, middle + size);
    path.moveTo(x - size, middle + size);
    path.lineTo(x + size, middle - size);
  }
  context.lineWidth = 1.5 * pixels;
  context.stroke(path);
}

function drawMark(context: CanvasRenderingContext2D, mark: number, { plane, pixels, markColour }: Frame): void {
  const { x, y } = plane;
  const at = x.start + ((mark - x.min) / (x.max - x.min)) * x.size;
  const path = new Path2D();
  path.moveTo(at, y.start);
  path.lineTo(at, y.start + y.size);
  context.globalAlpha = 1;
  context.strokeStyle = markColour;
  context.lineWidth = pixels;
  context.setLineDash([4 * pixels, 3 * pixels]);
  context.stroke(path);
}

function setColour(context: CanvasRenderingContext2D, line: Line, { dark }: Frame): void {
  const colour = line.colour[dark ? 1 : 0];
  context.strokeStyle = colour;
  context.fillStyle = colour;
}

function strengthOf(line: Line, { focus }: Frame): number {
  return focus === null || line.key === focus ? 1 : PALE;
}
