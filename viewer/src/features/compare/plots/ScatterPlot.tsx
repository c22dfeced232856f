/** The points of runs between two axes: which one is pointed at, and the rectangle that chooses runs. */

import type { JSX } from "preact";
import { useCallback, useMemo, useRef } from "preact/hooks";

import { useDrawing } from "../../../hooks/canvas";
import { dark } from "../../../state/session";
import { type Brush, brushBetween, placeOfBrush, withBrush } from "../brush";
import { type CompareProps, pointed, show } from "../props";
import type { Column } from "../runs";
import { type Scale, scaleOf } from "../scales";
import tools from "../tools.module.css";
import { onRunKeys, openRun, themeColour, useWidth } from "./plot";
import { nearestPoint } from "./plots";
import css from "./plots.module.css";
import { Tip } from "./Tip";

const HEIGHT = 500;
const EDGE = { left: 76, right: 24, top: 20, bottom: 52 };
/** Points at the least and the greatest value lie inside the frame, by this part of it. */
const ROOM = 0.03;
const REACH = 14;
/** A press that moves fewer pixels is a click. */
const CLICK = 4;

type Point = readonly [x: number, y: number];

/** The two axes: their columns, and where their values lie, as places from 0 to 1 and as pixels. */
interface Plane {
  readonly across: Column;
  readonly up: Column;
  readonly x: Scale;
  readonly y: Scale;
  readonly width: number;
  readonly xOf: (place: number) => number;
  readonly yOf: (place: number) => number;
}

interface PlotProps extends CompareProps {
  across: Column;
  up: Column;
  logX: boolean;
  logY: boolean;
  order: readonly number[];
  colourOf: (row: number) => string;
  by: Column | null;
}

export function ScatterPlot(props: PlotProps): JSX.Element {
  const { view, runs, shown, hidden, across, up, logX, logY, order, by } = props;
  const { element, width } = useWidth();
  const plane = useMemo(() => planeOf(across, up, logX, logY, width), [across, up, logX, logY, width]);
  const points = useMemo(() => pointsOf(plane), [plane]);
  const start = useRef<Point | null>(null);
  const row = runs.findIndex((run) => run.id === pointed.value);
  const chooseAll = (): void => show({ brush: withBrush(withBrush(view.brush, across.name, null), up.name, null) });
  const without = points.filter((point, n) => !point && shown.includes(n)).length;

  function onPointerMove(event: PointerEvent): void {
    const point = pointOf(event, element.current!);
    const from = start.current;
    if (from && isDrag(from, point)) show({ brush: brushes(view.brush, plane, from, point) });
    const near = from ? -1 : nearestPoint(points, shown, point, REACH);
    pointed.value = near < 0 ? null : runs[near]!.id;
  }

  function onPointerUp(event: PointerEvent): void {
    const [from, point] = [start.current, pointOf(event, element.current!)];
    start.current = null;
    if (!from || isDrag(from, point)) return;
    const near = nearestPoint(points, shown, point, REACH);
    if (near >= 0) openRun(props, near);
    else chooseAll();
  }

  return (
    <>
      <div
        ref={element}
        class={css["plot"]}
        style={{ height: `${HEIGHT}px` }}
        role="group"
        aria-label={`${up.label} over ${across.label} of ${shown.length} runs. Arrow keys go from run to run, Enter opens one.`}
        tabIndex={0}
        onKeyDown={onRunKeys(props, order)}
        onPointerDown={(event) => {
          start.current = pointOf(event, event.currentTarget);
          if (event.pointerType === "mouse") event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={onPointerMove}
        onPointerUp={onPointerUp}
        onPointerLeave={() => (pointed.value = null)}
      >
        <svg viewBox={`0 0 ${width || 1} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
          <Axes plane={plane} />
          <Rectangle brush={view.brush} plane={plane} />
        </svg>
        <Dots {...props} width={width} points={points} row={row} />
        {points[row] && !hidden[row] && (
          <Tip
            name={runs[row]!.name}
            row={row}
            columns={by ? [across, up, by] : [across, up]}
            at={points[row]}
            width={width}
          />
        )}
      </div>
      {without > 0 && <p class={tools["tools"]}>{without} runs have no value on one of the axes.</p>}
    </>
  );
}

function planeOf(across: Column, up: Column, logX: boolean, logY: boolean, width: number): Plane {
  const wide = Math.max(1, width - EDGE.left - EDGE.right);
  const tall = HEIGHT - EDGE.top - EDGE.bottom;
  return {
    across,
    up,
    x: scaleOf(across, logX),
    y: scaleOf(up, logY),
    width,
    xOf: (place) => EDGE.left + wide * (ROOM + place * (1 - 2 * ROOM)),
    yOf: (place) => HEIGHT - EDGE.bottom - tall * (ROOM + place * (1 - 2 * ROOM)),
  };
}

/** Where each run lies; null: it has no value on one of the axes. */
function pointsOf({ across, up, x, y, xOf, yOf }: Plane): (Point | null)[] {
  return across.values.map((value, row) => {
    const [right, high] = [x.place(value), y.place(up.values[row]!)];
    return right === null || high === null ? null : [xOf(right), yOf(high)];
  });
}

function pointOf(event: PointerEvent, element: HTMLElement): Point {
  const box = element.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

function isDrag(from: Point, to: Point): boolean {
  return Math.hypot(to[0] - from[0], to[1] - from[1]) > CLICK;
}

/** The brushes with those of the rectangle between two points. */
function brushes(before: readonly Brush[], { across, up, x, y, xOf, yOf }: Plane, from: Point, to: Point): Brush[] {
  const right = (pixel: number): number => within((pixel - xOf(0)) / (xOf(1) - xOf(0)));
  const high = (pixel: number): number => within((pixel - yOf(0)) / (yOf(1) - yOf(0)));
  const sideways = brushBetween(across.name, x, right(from[0]), right(to[0]));
  const upwards = brushBetween(up.name, y, high(from[1]), high(to[1]));
  return withBrush(withBrush(before, across.name, sideways), up.name, upwards);
}

function Axes({ plane: { across, up, x, y, width, xOf, yOf } }: { plane: Plane }): JSX.Element {
  return (
    <g class={css["axes"]}>
      {x.ticks.map((tick) => (
        <>
          <line x1={xOf(tick.at)} x2={xOf(tick.at)} y1={EDGE.top} y2={HEIGHT - EDGE.bottom} />
          <text x={xOf(tick.at)} y={HEIGHT - EDGE.bottom + 17} text-anchor="middle">
            {cut(tick.label)}
          </text>
        </>
      ))}
      {y.ticks.map((tick) => (
        <>
          <line x1={EDGE.left} x2={width - EDGE.right} y1={yOf(tick.at)} y2={yOf(tick.at)} />
          <text x={EDGE.left - 8} y={yOf(tick.at) + 4} text-anchor="end">
            {cut(tick.label)}
          </text>
        </>
      ))}
      <text class={css["title"]} x={xOf(0.5)} y={HEIGHT - 12} text-anchor="middle">
        {across.label}
      </text>
      <text class={css["title"]} transform={`translate(16 ${yOf(0.5)}) rotate(-90)`} text-anchor="middle">
        {up.label}
      </text>
    </g>
  );
}

function Rectangle({ brush, plane }: { brush: readonly Brush[]; plane: Plane }): JSX.Element | null {
  const { across, up, x, y, xOf, yOf } = plane;
  const sideways = brush.find(({ column }) => column === across.name);
  const upwards = brush.find(({ column }) => column === up.name);
  if (!sideways && !upwards) return null;
  const [left, right] = (sideways && placeOfBrush(sideways, x)) ?? [-ROOM, 1 + ROOM];
  const [low, high] = (upwards && placeOfBrush(upwards, y)) ?? [-ROOM, 1 + ROOM];
  const [from, to] = [xOf(left) - 5, xOf(right) + 5];
  const [top, bottom] = [yOf(high) - 5, yOf(low) + 5];
  return (
    <rect
      class={css["brush"]}
      x={from}
      width={Math.max(0, to - from)}
      y={top}
      height={Math.max(0, bottom - top)}
      rx={3}
    />
  );
}

interface DotsProps {
  width: number;
  points: readonly (Point | null)[];
  /** The run that is pointed at, or -1. */
  row: number;
  shown: readonly number[];
  chosen: readonly boolean[];
  hidden: readonly boolean[];
  colourOf: (row: number) => string;
}

function Dots({ width, points, row, shown, chosen, hidden, colourOf }: DotsProps): JSX.Element {
  const isDark = dark.value;
  const draw = useCallback(
    (context: CanvasRenderingContext2D) => {
      context.globalAlpha = 0.2;
      context.fillStyle = themeColour("--soft");
      points.forEach((point, n) => {
        if (point && !hidden[n] && !chosen[n]) dot(context, point, 3.5);
      });
      context.globalAlpha = shown.length > 300 ? 0.7 : 0.9;
      for (const n of shown) {
        context.fillStyle = colourOf(n);
        if (points[n]) dot(context, points[n], 4.5);
      }
      const at = points[row];
      if (!at || hidden[row]) return;
      context.globalAlpha = 1;
      context.fillStyle = themeColour("--text");
      dot(context, at, 8);
      context.fillStyle = colourOf(row);
      dot(context, at, 6);
    },
    [points, row, shown, chosen, hidden, colourOf, isDark],
  );
  return <canvas ref={useDrawing(width, HEIGHT, draw)} />;
}

function dot(context: CanvasRenderingContext2D, [x, y]: Point, radius: number): void {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
}

function within(place: number): number {
  return Math.min(1.001, Math.max(-0.001, place));
}

function cut(label: string): string {
  return label.length > 11 ? `${label.slice(0, 10)}…` : label;
}
