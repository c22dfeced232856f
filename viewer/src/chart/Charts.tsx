/** All charts of a page: the controls, the sections, and one chart over the whole page. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { useKeys } from "../hooks/keys";
import { nameExpressionOf } from "../lib/expressions";
import { counted } from "../lib/times";
import { remember, remembered } from "../state/session";
import type { MenuItem } from "../ui/Menu";
import { Empty } from "../ui/Notice";
import { Card } from "./Card";
import css from "./Charts.module.css";
import { type AxisOption, Controls, type Size } from "./Controls";
import type { Drawn } from "./drawer";
import { exportsOf } from "./export";
import type { Line } from "./line";
import { pageOf } from "./page";
import { type Section, sectionsOf } from "./sections";
import type { ChartSource, ChartSpec } from "./source";
import type { View } from "./view";

export interface ChartsProps {
  readonly source: ChartSource;
  readonly charts: readonly ChartSpec[];
  readonly view: View;
  /** The user changes the view. `push`: it can be gone back from. */
  readonly onView: (change: Partial<View>, push: boolean) => void;
  /** Under which name this browser remembers the size of charts and which sections are closed. */
  readonly name: string;
  /** What x may be. */
  readonly axes: readonly AxisOption[];
  /** Further entries of a chart's menu. */
  readonly items?: (spec: ChartSpec) => readonly (MenuItem | string | null)[];
  /** Further controls. */
  readonly children?: ComponentChildren;
}

const HEIGHTS: Readonly<Record<Size, number>> = { small: 150, medium: 210, large: 340 };

/** What charts do by themselves, for the list of keys. */
const KEYS = [
  { shown: "Ctrl + wheel", does: "Zoom the chart under the pointer" },
  { shown: "← →", does: "Move the crosshair of the focused chart; with Shift, what it shows" },
  { shown: "+ − 0", does: "Zoom the focused chart in, out, all" },
  { shown: "Enter", does: "What was at the crosshair: log, images, plots, machine" },
].map((key) => ({ ...key, keys: [], run: () => undefined }));

export function Charts(props: ChartsProps): JSX.Element {
  const { source, charts, view, onView, name, axes } = props;
  const page = useMemo(() => pageOf(source), [source]);
  useKeys("Charts", KEYS);
  useEffect(() => page.changes.follow(page.source.tasks), [page]);
  useEffect(() => {
    if (!view.range) page.together.zoomed = null;
  }, [page, view.range]);

  const [size, setSize] = useState<Size>(() => remembered<Size>(`${name}.size`, "medium"));
  const sections = useMemo(() => sectionsOf(charts, view.pins), [charts, view.pins]);
  const full = charts.find(({ id }) => id === view.full);

  const card = (spec: ChartSpec, height: number): JSX.Element => (
    <Card
      key={spec.id}
      spec={spec}
      view={view}
      page={page}
      height={height}
      onView={onView}
      items={(lines, drawn) => itemsOf(spec, lines, drawn, props)}
    />
  );
  return (
    <div>
      <Controls
        view={view}
        onView={onView}
        axes={axes}
        size={size}
        onSize={(chosen) => {
          setSize(chosen);
          remember(`${name}.size`, chosen);
        }}
      >
        {props.children}
      </Controls>
      {!charts.length && <Empty title={nothingFor(view.find)} />}
      {sections.map((section) => (
        <SectionOf
          key={section.title}
          section={section}
          alone={sections.length === 1}
          name={name}
          size={size}
          card={(spec) => card(spec, HEIGHTS[size])}
        />
      ))}
      {full && <FullPage close={() => onView({ full: null }, true)}>{(height) => card(full, height)}</FullPage>}
    </div>
  );
}

function nothingFor(find: string): string {
  if (!find) return "There are no scalars yet";
  return nameExpressionOf(find)
    ? `No name matches ${find}`
    : `${find} is not a valid expression (or one that takes long), and no name contains it`;
}

/** Charts of a section that are there at first: each takes a little even while it is not on the screen. */
const FIRST_CHARTS = 300;

function SectionOf(props: {
  section: Section;
  alone: boolean;
  name: string;
  size: Size;
  card: (spec: ChartSpec) => JSX.Element;
}): JSX.Element {
  const { section, alone, name, size, card } = props;
  const [open, setOpen] = useState(() => !remembered<string[]>(`${name}.closed`, []).includes(section.title));
  const [most, setMost] = useState(FIRST_CHARTS);
  const grid = (
    <>
      <div class={css["grid"]} data-size={size}>
        {section.charts.slice(0, most).map(card)}
      </div>
      {section.charts.length > most && (
        <button type="button" onClick={() => setMost(most + FIRST_CHARTS)}>
          Show more of {counted(section.charts.length)} charts
        </button>
      )}
    </>
  );
  if (alone && section.title === "") return grid;
  return (
    <details
      open={open}
      class={css["section"]}
      onToggle={(event) => {
        const opened = event.currentTarget.open;
        if (opened === open) return;
        setOpen(opened);
        const others = remembered<string[]>(`${name}.closed`, []).filter((title) => title !== section.title);
        remember(`${name}.closed`, opened ? others : [...others, section.title].slice(-200));
      }}
    >
      <summary>
        <h2>{section.title || "Other"}</h2> <span>{counted(section.charts.length)}</span>
      </summary>
      {open && grid}
    </details>
  );
}

/** One chart over the whole page. */
function FullPage({ children, close }: { children: (height: number) => JSX.Element; close: () => void }): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  const [height, setHeight] = useState(innerHeight);
  useEffect(() => {
    const measure = (): void => setHeight(innerHeight);
    element.current?.showModal();
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, []);
  return (
    <dialog ref={element} class={css["full"]} aria-label="One chart" onClose={close}>
      <button type="button" class={css["close"]} onClick={() => element.current?.close()}>
        Close
      </button>
      {children(Math.max(200, height - 150))}
    </dialog>
  );
}

function itemsOf(
  spec: ChartSpec,
  lines: readonly Line[],
  drawn: Drawn | null,
  { source, view, onView, items }: ChartsProps,
): readonly (MenuItem | string | null)[] {
  const at = view.pins.indexOf(spec.id);
  const moved = (to: number): readonly string[] => {
    const others = view.pins.filter((id) => id !== spec.id);
    return [...others.slice(0, to), spec.id, ...others.slice(to)];
  };
  const pin: MenuItem[] =
    at < 0
      ? [{ label: "Pin", run: () => onView({ pins: [...view.pins, spec.id] }, false) }]
      : [
          { label: "Unpin", run: () => onView({ pins: view.pins.filter((id) => id !== spec.id) }, false) },
          {
            label: "Move forward",
            why: at === 0 ? "it is the first" : null,
            run: () => onView({ pins: moved(at - 1) }, false),
          },
          {
            label: "Move back",
            why: at === view.pins.length - 1 ? "it is the last" : null,
            run: () => onView({ pins: moved(at + 1) }, false),
          },
        ];
  const full: MenuItem[] =
    view.full === null ? [{ label: "Whole page", run: () => onView({ full: spec.id }, true) }] : [];
  return [...full, ...pin, ...(items?.(spec) ?? []), null, ...exportsOf(spec, lines, drawn, source, view)];
}
