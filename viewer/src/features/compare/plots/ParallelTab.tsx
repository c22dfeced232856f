/**
 * Parallel coordinates: an axis for each column, a line for each run. A range that is drawn on an axis chooses the runs
 * that pass through it, here and on all other tabs.
 */

import type { JSX } from "preact";
import { useCallback, useMemo, useRef, useState } from "preact/hooks";

import { useDrawing } from "../../../hooks/canvas";
import { useSame } from "../../../hooks/same";
import { dark } from "../../../state/session";
import { Menu, type MenuItem } from "../../../ui/Menu";
import { Empty } from "../../../ui/Notice";
import { type Brush, brushBetween, placeOfBrush, withBrush } from "../brush";
import { Choice } from "../Choice";
import { type CompareProps, pointed, show } from "../props";
import { type Column, compareValues } from "../runs";
import { type Scale, scaleOf } from "../scales";
import tools from "../tools.module.css";
import { Legend } from "./Legend";
import { BY_RUN, onRunKeys, openRun, themeColour, useColouring, useWidth } from "./plot";
import { isLog, nearestLine, usualAxes } from "./plots";
import css from "./plots.module.css";
import { Tip, written } from "./Tip";

const HEIGHT = 480;
const TOP = 60;
const BOTTOM = 44;
const SIDES = 70;
/** An axis has at least so much room; if there are more of them, the plot scrolls. */
const LEAST_ROOM = 110;
/** Below its axis, in pixels: where lines of runs without a value go. */
const MISSING = 22;
const REACH = 10;
/** A press that moves fewer pixels is a click. */
const CLICK = 4;

export function ParallelTab(props: CompareProps): JSX.Element {
  const { view, columns, runs, shown, hidden } = props;
  const names = useSame(view.axes);
  const axes = useMemo(() => {
    const chosen = names.map((name) => columns.get(name)).filter((column) => column !== undefined);
    return chosen.length ? chosen : usualAxes(columns);
  }, [columns, names]);
  const { element, width: seen } = useWidth();
  const width = Math.max(seen, 2 * SIDES + LEAST_ROOM * (axes.length - 1));
  const logarithmic = useSame(view.logarithmic);
  const linear = useSame(view.linear);
  const scales = useMemo(
    () => axes.map((column) => scaleOf(column, isLog(column, logarithmic, linear))),
    [axes, logarithmic, linear],
  );
  const places = useMemo(() => placesOf(axes.length, width), [axes.length, width]);
  const lines = useMemo(
    () => runs.map((_, row) => axes.map((column, n) => yOf(scales[n]!.place(column.values[row]!)))),
    [runs, axes, scales],
  );
  const colour = useColouring(props);
  const [at, setAt] = useState<readonly [number, number] | null>(null);
  const row = runs.findIndex((run) => run.id === pointed.value);
  const order = useMemo(() => byColumn(shown, colour.by), [shown, colour.by]);
  if (axes.length < 2) {
    return (
      <>
        <Tools {...props} axes={axes} />
        <Empty title="Two axes are needed">
          <p>No parameter differs between these runs. Choose axes above.</p>
        </Empty>
      </>
    );
  }
  return (
    <>
      <Tools {...props} axes={axes} />
      <div class={css["scroll"]}>
        <div
          ref={element}
          class={css["plot"]}
          style={{ height: `${HEIGHT}px`, minWidth: `${2 * SIDES + LEAST_ROOM * (axes.length - 1)}px` }}
          role="group"
          aria-label={`Parallel coordinates of ${shown.length} runs over ${axes.map((one) => one.label).join(", ")}. Arrow keys go from run to run, Enter opens one.`}
          tabIndex={0}
          onKeyDown={(event) => {
            if (event.target === event.currentTarget) onRunKeys(props, order)(event);
          }}
          onPointerMove={(event) => {
            const box = event.currentTarget.getBoundingClientRect();
            const point = [event.clientX - box.left, event.clientY - box.top] as const;
            const near = event.buttons ? -1 : nearestLine(lines, places, shown, point, REACH);
            setAt(point);
            pointed.value = near < 0 ? null : runs[near]!.id;
          }}
          onPointerLeave={() => {
            setAt(null);
            pointed.value = null;
          }}
          onClick={(event) => {
            const onPlot = (event.target as Element).closest("[data-control]") === null;
            if (onPlot && row >= 0 && event.detail === 1) openRun(props, row);
          }}
        >
          {view.brush.length > 0 && <LeftOut width={width} places={places} lines={lines} hidden={hidden} />}
          <Lines width={width} places={places} lines={lines} shown={shown} colourOf={colour.of} />
          <Pointed
            width={width}
            places={places}
            line={row >= 0 && !hidden[row] ? lines[row]! : null}
            colour={row >= 0 ? colour.of(row) : ""}
          />
          <svg viewBox={`0 0 ${width} ${HEIGHT}`} preserveAspectRatio="none">
            {axes.map((column, n) => (
              <Axis key={column.name} column={column} scale={scales[n]!} x={places[n]!} brushes={view.brush} />
            ))}
          </svg>
          {axes.map((column, n) => (
            <div
              key={column.name}
              class={css["head"]}
              style={{
                left: `${places[n]}px`,
                maxWidth: `${Math.max(LEAST_ROOM, (width - 2 * SIDES) / Math.max(1, axes.length - 1)) - 8}px`,
              }}
              data-control=""
            >
              <Menu label={`Axis ${column.label}`} items={axisMenu(props, axes, n, scales[n]!)}>
                {column.label}
              </Menu>
              <small>{aboutOf(column, scales[n]!)}</small>
            </div>
          ))}
          {row >= 0 && !hidden[row] && (
            <Tip
              name={runs[row]!.name}
              row={row}
              columns={colour.by && !axes.includes(colour.by) ? [...axes, colour.by] : axes}
              at={at ?? [places[0]!, lines[row]![0]!]}
              width={width}
            />
          )}
        </div>
      </div>
    </>
  );
}

function Tools(props: CompareProps & { axes: readonly Column[] }): JSX.Element {
  const { columns, axes, view } = props;
  const { by } = useColouring(props);
  return (
    <div class={tools["tools"]}>
      <Choice
        label="Add an axis"
        columns={columns}
        value=""
        others={{ "": "Choose…" }}
        only={(column) => !axes.includes(column)}
        choose={(name) => name && show({ axes: [...axes.map((one) => one.name), name] }, { push: true })}
      />
      <Choice
        label="Colour by"
        columns={columns}
        value={view.colour ?? by?.name ?? BY_RUN}
        others={{ [BY_RUN]: "run" }}
        choose={(name) => show({ colour: name })}
      />
      {by && <Legend column={by} log={isLog(by, view.logarithmic, view.linear)} />}
      {view.brush.length === 0 && <span>Drag along an axis to choose runs.</span>}
    </div>
  );
}

interface Drawn {
  width: number;
  places: readonly number[];
  lines: readonly (readonly number[])[];
}

/** The lines that brushes may leave out, faint: all of them, so that a brush that moves needs not draw them anew. */
function LeftOut({ width, places, lines, hidden }: Drawn & { hidden: readonly boolean[] }): JSX.Element {
  const isDark = dark.value;
  const left = useSame(hidden);
  const draw = useCallback(
    (context: CanvasRenderingContext2D) => {
      context.strokeStyle = themeColour("--soft");
      context.globalAlpha = 0.1;
      lines.forEach((line, row) => {
        if (!left[row]) stroke(context, places, line);
      });
    },
    [places, lines, left, isDark],
  );
  const canvas = useDrawing(width, HEIGHT, draw);
  return <canvas ref={canvas} />;
}

function Lines({
  width,
  places,
  lines,
  shown,
  colourOf,
}: Drawn & { shown: readonly number[]; colourOf: (row: number) => string }): JSX.Element {
  const draw = useCallback(
    (context: CanvasRenderingContext2D) => {
      context.globalAlpha = shown.length > 300 ? 0.35 : shown.length > 60 ? 0.6 : 0.9;
      context.lineWidth = shown.length > 300 ? 1 : 1.5;
      for (const row of shown) {
        context.strokeStyle = colourOf(row);
        stroke(context, places, lines[row]!);
      }
    },
    [places, lines, shown, colourOf],
  );
  const canvas = useDrawing(width, HEIGHT, draw);
  return <canvas ref={canvas} />;
}

function Pointed({
  width,
  places,
  line,
  colour,
}: {
  width: number;
  places: readonly number[];
  line: readonly number[] | null;
  colour: string;
}): JSX.Element {
  const draw = useCallback(
    (context: CanvasRenderingContext2D) => {
      if (!line) return;
      context.lineWidth = 6;
      context.strokeStyle = themeColour("--raised");
      stroke(context, places, line);
      context.lineWidth = 3;
      context.strokeStyle = colour;
      stroke(context, places, line);
    },
    [places, line, colour],
  );
  const canvas = useDrawing(width, HEIGHT, draw);
  return <canvas ref={canvas} />;
}

function stroke(context: CanvasRenderingContext2D, places: readonly number[], line: readonly number[]): void {
  context.lineJoin = "round";
  context.beginPath();
  for (const [n, x] of places.entries()) context.lineTo(x, line[n]!);
  context.stroke();
}

/** An axis with its brush: drag along it, or with the focus on it, arrow keys move the brush and Delete takes it away. */
function Axis({
  column,
  scale,
  x,
  brushes,
}: {
  column: Column;
  scale: Scale;
  x: number;
  brushes: readonly Brush[];
}): JSX.Element {
  const start = useRef<number | null>(null);
  const brush = brushes.find((one) => one.column === column.name) ?? null;
  const held = brush && placeOfBrush(brush, scale);
  const missing = column.values.some((value) => scale.place(value) === null);
  const set = (next: Brush | null): void => show({ brush: withBrush(brushes, column.name, next) });

  function placeAt(event: PointerEvent): number {
    const box = (event.currentTarget as Element).closest("svg")!.getBoundingClientRect();
    return Math.min(1.001, Math.max(-0.001, (HEIGHT - BOTTOM - (event.clientY - box.top)) / (HEIGHT - TOP - BOTTOM)));
  }

  function onKeyDown(event: KeyboardEvent): void {
    const step = { ArrowUp: 0.05, ArrowDown: -0.05 }[event.key];
    if (event.key === "Delete" || event.key === "Backspace" || event.key === "Escape") set(null);
    else if (step !== undefined) {
      const [low, high] = held ?? (step > 0 ? [0.45, 1] : [0, 0.55]);
      const [from, to] = !held ? [low, high] : event.shiftKey ? [low, high + step] : [low + step, high + step];
      set(brushBetween(column.name, scale, Math.max(-0.001, Math.min(from, 1)), Math.min(1.001, Math.max(to, 0))));
    } else return;
    event.preventDefault();
  }

  const y = held && { from: yOf(held[1]), to: yOf(held[0]) };
  return (
    <g
      class={css["axis"]}
      data-control=""
      role="slider"
      tabindex={0}
      aria-orientation="vertical"
      aria-label={`Choose runs by ${column.label}`}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={held ? Math.round(50 * (held[0] + held[1])) : 50}
      aria-valuetext={brush ? wordsOf(brush) : "all runs"}
      onKeyDown={onKeyDown}
    >
      <line x1={x} x2={x} y1={TOP} y2={HEIGHT - BOTTOM} />
      {scale.ticks.map((tick) => (
        <text key={tick.label} x={x + 6} y={yOf(tick.at) + 4}>
          {tick.label.length > 16 ? `${tick.label.slice(0, 15)}…` : tick.label}
        </text>
      ))}
      {missing && (
        <text class={css["missing"]} x={x + 6} y={HEIGHT - BOTTOM + MISSING + 4}>
          none
        </text>
      )}
      {y && (
        <rect class={css["brush"]} x={x - 8} width={16} y={y.from - 3} height={Math.max(0, y.to - y.from) + 6} rx={3} />
      )}
      <rect
        class={css["zone"]}
        x={x - 16}
        width={32}
        y={TOP - 6}
        height={HEIGHT - TOP - BOTTOM + 12}
        data-axis={column.name}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          start.current = placeAt(event);
        }}
        onPointerMove={(event) => {
          const place = placeAt(event);
          if (start.current === null || Math.abs(place - start.current) * (HEIGHT - TOP - BOTTOM) < CLICK) return;
          set(brushBetween(column.name, scale, start.current, place));
        }}
        onPointerUp={(event) => {
          if (start.current !== null && Math.abs(placeAt(event) - start.current) * (HEIGHT - TOP - BOTTOM) < CLICK)
            set(null);
          start.current = null;
        }}
      />
    </g>
  );
}

function wordsOf(brush: Brush): string {
  return "texts" in brush ? brush.texts.join(", ") : `from ${written(brush.from)} to ${written(brush.to)}`;
}

function axisMenu(props: CompareProps, axes: readonly Column[], n: number, scale: Scale): (MenuItem | null)[] {
  const { view } = props;
  const { name, numbers } = axes[n]!;
  const names = axes.map((one) => one.name);
  const others = names.filter((one) => one !== name);
  const moved = (to: number): string[] => [...others.slice(0, to), name, ...others.slice(to)];
  const without = (list: readonly string[]): string[] => list.filter((one) => one !== name);
  const log = scale.kind === "log";
  return [
    {
      label: log ? "Linear axis" : "Logarithmic axis",
      why: numbers ? null : "These are no numbers",
      run: () =>
        show(
          log
            ? { logarithmic: without(view.logarithmic), linear: [...without(view.linear), name] }
            : { logarithmic: [...without(view.logarithmic), name], linear: without(view.linear) },
        ),
    },
    { label: "Colour by this", run: () => show({ colour: name }) },
    null,
    { label: "Move left", why: n === 0 ? "It is the first" : null, run: () => show({ axes: moved(n - 1) }) },
    {
      label: "Move right",
      why: n === names.length - 1 ? "It is the last" : null,
      run: () => show({ axes: moved(n + 1) }),
    },
    {
      label: "Remove this axis",
      why: names.length > 2 ? null : "Two axes are needed",
      run: () => show({ axes: others }, { push: true }),
    },
  ];
}

function aboutOf(column: Column, scale: Scale): string {
  const which =
    column.kind === "metric" ? { last: "last", min: "least", max: "greatest" }[column.name.split(":")[0]!] : "";
  return [which, scale.kind === "log" ? "log" : ""].filter(Boolean).join(", ");
}

/** Pixels from the top for a place on an axis; below the axis for what has none. */
function yOf(place: number | null): number {
  return place === null ? HEIGHT - BOTTOM + MISSING : HEIGHT - BOTTOM - place * (HEIGHT - TOP - BOTTOM);
}

/** The x of each axis. */
function placesOf(axes: number, width: number): readonly number[] {
  return Array.from({ length: axes }, (_, n) => SIDES + (n * (width - 2 * SIDES)) / Math.max(1, axes - 1));
}

function byColumn(rows: readonly number[], column: Column | null): readonly number[] {
  return column ? [...rows].sort((one, other) => compareValues(column.values[one]!, column.values[other]!)) : rows;
}
