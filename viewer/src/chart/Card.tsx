/** A chart with its title, menu, names of lines, and how many points it shows. It exists only while it is on screen. */

import { useSignalEffect } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { wordsOf } from "../api/errors";
import { counted } from "../lib/times";
import { dark } from "../state/session";
import { Menu, type MenuItem } from "../ui/Menu";
import type { Range } from "./align";
import css from "./Card.module.css";
import { Cause } from "./Cause";
import { Chart } from "./Chart";
import { type Count, useCurves } from "./curves";
import type { Drawn, Picked } from "./drawer";
import type { Line } from "./line";
import { LEFT } from "./options";
import type { Page } from "./page";
import { useOnScreen } from "./screen";
import type { ChartSpec } from "./source";
import { askedAxis, type View } from "./view";

export interface CardProps {
  readonly spec: ChartSpec;
  readonly view: View;
  readonly page: Page;
  readonly height: number;
  readonly onView: (change: Partial<View>, push: boolean) => void;
  /** Further entries of the menu. */
  readonly items?: (lines: readonly Line[], drawn: Drawn | null) => readonly (MenuItem | string | null)[];
  readonly children?: ComponentChildren;
}

/** Pixels of the title, the names and the line below. */
const AROUND = 68;
/** Pixels of the borders and the padding left and right. */
const BESIDE = 18;

export function Card(props: CardProps): JSX.Element {
  const [element, width] = useOnScreen<HTMLElement>();
  return (
    <article
      ref={element}
      class={css["card"]}
      style={{ height: `${props.height + AROUND}px` }}
      aria-label={props.spec.title}
    >
      {width !== null && <Content {...props} width={Math.round(width - BESIDE)} />}
    </article>
  );
}

function Content({
  spec,
  view,
  page,
  width,
  height,
  onView,
  items,
  children,
}: CardProps & { width: number }): JSX.Element {
  const drawn = useRef<Drawn | null>(null);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [picked, setPicked] = useState<Picked | null>(null);

  const shown = useCurves(spec, view, page, width - LEFT);
  const { metric } = spec;
  const { again } = shown;
  useEffect(() => page.changes.listen(metric, again), [page, metric, again]);

  const lines = useMemo(() => shown.lines.filter(({ key }) => !hidden.has(key)), [shown.lines, hidden]);
  const mark = view.at !== null && shown.kind === "timestamp" ? view.at : null;
  const { tasks } = page.source;
  const task = ({ line }: Picked): string | undefined => line.task ?? (tasks.length === 1 ? tasks[0] : undefined);
  const names = useMemo(() => {
    const keys = shown.lines.map((line) => line.key);
    const toggle = (key: string, alone: boolean): void =>
      setHidden(alone ? hiddenBut(key, keys, hidden) : toggled(hidden, key));
    return (
      <Names lines={shown.lines} hidden={hidden} toggle={toggle} {...(spec.of !== undefined && { of: spec.of })} />
    );
  }, [shown.lines, hidden, spec.of]);
  return (
    <>
      <header class={css["head"]}>
        <h3 title={spec.title}>{spec.title}</h3>
        {children}
        {items && (
          <Menu label={`Menu of ${spec.title}`} class={css["button"] ?? ""} items={() => items(lines, drawn.current)}>
            ⋯
          </Menu>
        )}
      </header>
      {names}
      <div style={{ height: `${height}px` }}>
        {shown.error ? (
          <div class={css["error"]} role="alert">
            {wordsOf(shown.error)}{" "}
            <button type="button" onClick={shown.again}>
              Try again
            </button>
          </div>
        ) : shown.lines.length > 0 ? (
          <Chart
            id={spec.id}
            label={nameOf(spec, shown.lines)}
            lines={lines}
            kind={shown.kind}
            logX={view.logX && shown.kind !== "timestamp"}
            logY={view.logY}
            trimmed={view.trimmed}
            range={shown.range}
            width={width}
            height={height}
            together={page.together}
            mark={mark}
            onZoom={(range: Range | null, push: boolean) => {
              page.together.zoomed = spec.id;
              onView({ range }, push);
            }}
            onPick={setPicked}
            onReady={(ready) => (drawn.current = ready)}
          />
        ) : (
          !shown.waiting && <div class={css["error"]}>No points</div>
        )}
      </div>
      {picked && task(picked) && (
        <Cause picked={picked} task={task(picked)!} axis={askedAxis(view.axis)} close={() => setPicked(null)} />
      )}
      <footer class={css["foot"]} aria-busy={shown.waiting}>
        {shown.count && shown.lines.length > 0 && inWords(shown.count)}
        {shown.lines.some(({ outer }) => outer) && "least and greatest of all points faint behind"}
      </footer>
    </>
  );
}

function toggled(hidden: ReadonlySet<string>, key: string): ReadonlySet<string> {
  const next = new Set(hidden);
  if (!next.delete(key)) next.add(key);
  return next;
}

/** All lines but one are hidden; if they are already, none is. */
function hiddenBut(key: string, keys: readonly string[], hidden: ReadonlySet<string>): ReadonlySet<string> {
  const others = keys.filter((other) => other !== key);
  return new Set(others.every((other) => hidden.has(other)) ? [] : others);
}

function inWords({ points, wrong }: Count): string {
  const all = `${counted(points)} points, all extremes shown`;
  return wrong ? `${all}, ${counted(wrong)} ${wrong === 1 ? "is" : "are"} NaN or infinite` : all;
}

/** "loss: train, val" */
function nameOf(spec: ChartSpec, lines: readonly Line[]): string {
  const names = lines.slice(0, 10).map(({ name }) => name);
  if (lines.length > names.length) names.push(`and ${lines.length - names.length} more`);
  return `${spec.title}: ${names.join(", ")}`;
}

/** The lines' names. A click hides a line or shows it; with Shift, or twice, it is alone. */
function Names(props: {
  lines: readonly Line[];
  hidden: ReadonlySet<string>;
  toggle: (key: string, alone: boolean) => void;
  of?: number;
}): JSX.Element {
  const { lines, hidden, toggle, of } = props;
  const [shade, setShade] = useState(dark.peek() ? 1 : 0);
  useSignalEffect(() => setShade(dark.value ? 1 : 0));
  return (
    <div class={css["names"]}>
      {lines.map(({ key, name, colour, dashed }) => (
        <button
          key={key}
          type="button"
          aria-pressed={!hidden.has(key)}
          title={name}
          onClick={(event) => toggle(key, event.shiftKey)}
          onDblClick={() => toggle(key, true)}
        >
          <i data-dashed={dashed ? "" : undefined} style={{ borderColor: colour[shade] }} />
          <span>{name}</span>
        </button>
      ))}
      {of !== undefined && <em>of {counted(of)}</em>}
    </div>
  );
}
