/** A point for each run, by two columns. A rectangle chooses the runs in it, here and on all other tabs. */

import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";

import { dark } from "../../../state/session";
import { Empty } from "../../../ui/Notice";
import { type Brush, brushBetween, placeOfBrush, withBrush } from "../brush";
import { Choice } from "../Choice";
import { type CompareProps, pointed, show } from "../props";
import { type Column, compareValues } from "../runs";
import { isWide, type Scale, scaleOf } from "../scales";
import tools from "../tools.module.css";
import { Legend } from "./Legend";
import { BY_RUN, emptied, onRunKeys, openRun, themeColour, useColouring, useWidth } from "./plot";
import { isLog, nearestPoint, usualAxes } from "./plots";
import css from "./plots.module.css";
import { Tip } from "./Tip";

const HEIGHT = 500;
const EDGE = { left: 76, right: 24, top: 20, bottom: 52 };
/** Points at the least and the greatest value lie inside the frame, by this part of it. */
const ROOM = 0.03;
const REACH = 14;
const CLICK = 4;

export function ScatterTab(props: CompareProps): JSX.Element {
  const { view, columns, shown } = props;
  const usual = useMemo(() => usualAxes(columns), [columns]);
  const across = columns.get(view.across ?? "") ?? usual.find(isWide) ?? usual.find((one) => one.numbers) ?? usual[0];
  const up = columns.get(view.up ?? "") ?? usual.at(-1);
  const colour = useColouring(props);
  const order = useMemo(
    () => (across ? [...shown].sort((a, b) => compareValues(across.values[a]!, across.values[b]!)) : shown),
    [shown, across],
  );
  if (!across || !up) return <Empty title="There is nothing to put on the axes" />;
  const [logX, logY] = [isLog(across, view.logarithmic, view.linear), isLog(up, view.logarithmic, view.linear)];
  return (
    <>
      <div class={tools["tools"]}>
        <Choice
          label="Across"
          columns={columns}
          value={across.name}
          choose={(name) => show({ across: name }, { push: true })}
        />
        <LogBox column={across} log={logX} {...props} />
        <Choice label="Up" columns={columns} value={up.name} choose={(name) => show({ up: name }, { push: true })} />
        <LogBox column={up} log={logY} {...props} />
        <Choice
          label="Colour by"
          columns={columns}
          value={view.colour ?? colour.by?.name ?? BY_RUN}
          others={{ [BY_RUN]: "run" }}
          choose={(name) => show({ colour: name })}
        />
        {colour.by && <Legend column={colour.by} log={isLog(colour.by, view.logarithmic, view.linear)} />}
      </div>
      <Plot
        {...props}
        across={across}
        up={up}
        logX={logX}
        logY={logY}
        order={order}
        colourOf={colour.of}
        by={colour.by}
      />
    </>
  );
}

function LogBox({ column, log, view }: CompareProps & { column: Column; log: boolean }): JSX.Element | null {
  if (!column.numbers) return null;
  const others = (list: readonly string[]): string[] => list.filter((one) => one !== column.name);
  return (
    <label>
      <input
        type="checkbox"
        aria-label={`Logarithmic axis of ${column.label}`}
        checked={log}
        onChange={(event) =>
          show(
            event.currentTarget.checked
              ? { logarithmic: [...others(view.logarithmic), column.name], linear: others(view.linear) }
              : { logarithmic: others(view.logarithmic), linear: [...others(view.linear), column.name] },
          )
        }
      />
      log
    </label>
  );
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

function Plot(props: PlotProps): JSX.Element {
  const { view, runs, shown, chosen, hidden, across, up, logX, logY, order, colourOf, by } = props;
  const x = useMemo(() => scaleOf(across, logX), [across, logX]);
  const y = useMemo(() => scaleOf(up, logY), [up, logY]);
  const { element, width } = useWidth();
  const canvas = useRef<HTMLCanvasElement>(null);
  const start = useRef<readonly [number, number] | null>(null);
  const inside = Math.max(1, width - EDGE.left - EDGE.right);
  const tall = HEIGHT - EDGE.top - EDGE.bottom;
  const xOf = (place: number): number => EDGE.left + inside * (ROOM + place * (1 - 2 * ROOM));
  const yOf = (place: number): number => HEIGHT - EDGE.bottom - tall * (ROOM + place * (1 - 2 * ROOM));
  const points = runs.map((_, row) => {
    const [right, high] = [x.place(across.values[row]!), y.place(up.values[row]!)];
    return right === null || high === null ? null : ([xOf(right), yOf(high)] as const);
  });
  const row = runs.findIndex((run) => run.id === pointed.value);
  const isDark = dark.value;
  useEffect(() => {
    if (!canvas.current || !width) return;
    const context = emptied(canvas.current, width, HEIGHT);
    const dot = (at: readonly [number, number], radius: number): void => {
      context.beginPath();
      context.arc(at[0], at[1], radius, 0, 2 * Math.PI);
      context.fill();
    };
    context.globalAlpha = 0.2;
    context.fillStyle = themeColour("--soft");
    points.forEach((point, n) => point && !hidden[n] && !chosen[n] && dot(point, 3.5));
    context.globalAlpha = shown.length > 300 ? 0.7 : 0.9;
    for (const n of shown) {
      context.fillStyle = colourOf(n);
      if (points[n]) dot(points[n], 4.5);
    }
    const at = points[row];
    if (!at || hidden[row]) return;
    context.globalAlpha = 1;
    context.fillStyle = themeColour("--text");
    dot(at, 8);
    context.fillStyle = colourOf(row);
    dot(at, 6);
  }, [width, points, row, shown, isDark]);

  function pointOf(event: PointerEvent): readonly [number, number] {
    const box = element.current!.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }
  const placeX = (at: number): number => within((at - xOf(0)) / (xOf(1) - xOf(0)));
  const placeY = (at: number): number => within((at - yOf(0)) / (yOf(1) - yOf(0)));
  function choose(from: readonly [number, number], to: readonly [number, number]): void {
    const sideways = brushBetween(across.name, x, placeX(from[0]), placeX(to[0]));
    const upwards = brushBetween(up.name, y, placeY(from[1]), placeY(to[1]));
    show({ brush: withBrush(withBrush(view.brush, across.name, sideways), up.name, upwards) });
  }
  const without = points.filter((point, n) => !point && shown.includes(n)).length;
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
          start.current = pointOf(event);
          if (event.pointerType === "mouse") event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={(event) => {
          const point = pointOf(event);
          const from = start.current;
          if (from && Math.hypot(point[0] - from[0], point[1] - from[1]) > CLICK) choose(from, point);
          const near = from ? -1 : nearestPoint(points, shown, point, REACH);
          pointed.value = near < 0 ? null : runs[near]!.id;
        }}
        onPointerUp={(event) => {
          const [from, point] = [start.current, pointOf(event)];
          start.current = null;
          if (!from || Math.hypot(point[0] - from[0], point[1] - from[1]) > CLICK) return;
          const near = nearestPoint(points, shown, point, REACH);
          if (near >= 0) openRun(props, near);
          else show({ brush: withBrush(withBrush(view.brush, across.name, null), up.name, null) });
        }}
        onPointerLeave={() => (pointed.value = null)}
      >
        <svg viewBox={`0 0 ${width || 1} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
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
            <text class={css["title"]} x={EDGE.left + inside / 2} y={HEIGHT - 12} text-anchor="middle">
              {across.label}
            </text>
            <text
              class={css["title"]}
              transform={`translate(16 ${EDGE.top + tall / 2}) rotate(-90)`}
              text-anchor="middle"
            >
              {up.label}
            </text>
          </g>
          <Rectangle view={view.brush} across={across} up={up} x={x} y={y} xOf={xOf} yOf={yOf} />
        </svg>
        <canvas ref={canvas} />
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

interface RectangleProps {
  view: readonly Brush[];
  across: Column;
  up: Column;
  x: Scale;
  y: Scale;
  xOf: (place: number) => number;
  yOf: (place: number) => number;
}

function Rectangle({ view, across, up, x, y, xOf, yOf }: RectangleProps): JSX.Element | null {
  const sideways = view.find((one) => one.column === across.name);
  const upwards = view.find((one) => one.column === up.name);
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

function within(place: number): number {
  return Math.min(1.001, Math.max(-0.001, place));
}

function cut(label: string): string {
  return label.length > 11 ? `${label.slice(0, 10)}…` : label;
}
