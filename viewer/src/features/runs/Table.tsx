/**
 * The table of a project's runs. The address says what it shows (`shown.ts`); `runs.ts` asks for the rows that are seen;
 * this draws them, and knows which row is the active one and which are selected.
 */

import type { ComponentChildren, JSX } from "preact";
import { useCallback, useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";

import { wordsOf } from "../../api/errors";
import { useKeys } from "../../hooks/keys";
import { useSame } from "../../hooks/same";
import { counted } from "../../lib/times";
import { Rows, type RowsHandle } from "../../scroll/Rows";
import { adjust, go, query } from "../../state/address";
import { namesById, wantNames } from "../../state/names";
import { attempt } from "../../state/toasts";
import { Link } from "../../ui/Link";
import { Menu } from "../../ui/Menu";
import { Empty, Failed, Waiting } from "../../ui/Notice";
import { Actions } from "./Actions";
import { useActive } from "./active";
import { Bar } from "./Bar";
import { contentOf } from "./Cell";
import { type Column, CURVE, columnOf, isRight, isShort, textOf } from "./columns";
import { Head, useWidths } from "./Head";
import { marks } from "./marks";
import type { Row, Runs, Section, Spot } from "./sections";
import { comparison, FEW_COLUMNS, parametersOf, type Shown, shownOf } from "./shown";
import { Sparks } from "./sparks";
import css from "./Table.module.css";
import { useLive, useRuns } from "./useRuns";
import { useUsualColumns } from "./usual";

export const ROW_HEIGHT = 32;
const CHECK_WIDTH = 34;
/** Rows above and below those that are drawn, which are asked for, too. */
const AHEAD = 100;
/** Milliseconds without a move after which rows are followed, and their curves and names asked for. */
const RESTED = 100;
/** Pixels of the name on a phone. */
const NARROW_NAME = 170;
export const COLOUR_VALUES = ["#2563eb", "#e8590c", "#2b8a3e", "#c2255c", "#7048e8", "#0c8599", "#a16207", "#57606a"];

export type Change = (part: Partial<Shown>) => void;

export function Table({ project }: { project: string }): JSX.Element {
  const narrow = useNarrow();
  const given = shownOf(query.value);
  const usual = useUsualColumns(project, given, !narrow && !query.value.has("cols"));
  const shown = shownOf(query.value, narrow ? FEW_COLUMNS : usual);
  const change: Change = (part) => adjust(parametersOf(part), { push: true });
  const { runs, waiting } = useRuns(project, shown);
  const version = runs?.version.value ?? 0;
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  /** For actions that take long: the table may ask something else when they end. */
  const latest = useRef(runs);
  latest.current = runs;
  const names = shown.curve ? [...shown.columns, CURVE + shown.curve] : shown.columns;
  const columns = names.map((name) =>
    narrow && name === "name" ? { ...columnOf(name), width: NARROW_NAME } : columnOf(name),
  );
  const widths = useWidths();
  const [range, setRange] = useState<readonly [number, number]>([0, 0]);
  const sparks = useSparks(project, shown);

  const seen = useMemo(() => {
    const rows: Row[] = [];
    for (let line = range[0]; line < range[1]; line++) {
      const row = runs?.row(line);
      if (row) rows.push(row);
    }
    return rows;
  }, [runs, version, range]);
  useEffect(() => sparks?.want(seen.map((row) => row.id)), [sparks, seen]);
  useNames(shown, seen, runs?.sections ?? NO_SECTIONS);
  useLive(runs, seen, (id) => {
    sparks?.stale(id);
    sparks?.want(seen.map((row) => row.id));
  });
  const resting = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(resting.current), []);
  const onRange = useCallback(
    (first: number, end: number) => {
      runs?.want(first - AHEAD, end + AHEAD);
      clearTimeout(resting.current);
      resting.current = setTimeout(() => setRange([first, end]), RESTED);
    },
    [runs],
  );

  return (
    <section class={css["body"]} aria-label="Runs">
      <Bar project={project} shown={shown} change={change} total={runs?.ready ? runs.total : null} />
      <div class={css["table"]} data-waiting={waiting ? "" : undefined}>
        {runs?.error && runs.ready && (
          <div class={css["problem"]} role="alert">
            {wordsOf(runs.error)}{" "}
            <button type="button" onClick={() => void runs.again()}>
              Try again
            </button>
          </div>
        )}
        {!runs ? (
          <Waiting />
        ) : runs.error && !runs.ready ? (
          <Failed error={runs.error} again={() => void runs.start()} />
        ) : runs.layout.lines === 0 ? (
          <Nothing shown={shown} change={change} />
        ) : (
          <Grid
            {...{ project, shown, change, runs, version, columns, widths, sparks, selected, setSelected, onRange }}
            names={namesById()}
          />
        )}
        {selected.size > 0 && (
          <Actions
            ids={[...selected]}
            project={project}
            shown={shown}
            change={change}
            done={(left) => {
              setSelected(new Set(left));
              void latest.current?.again();
            }}
            clear={() => setSelected(new Set())}
          />
        )}
      </div>
    </section>
  );
}

interface GridProps {
  readonly project: string;
  readonly shown: Shown;
  readonly change: Change;
  readonly runs: Runs;
  readonly version: number;
  readonly columns: readonly Column[];
  readonly widths: ReturnType<typeof useWidths>;
  readonly sparks: Sparks | null;
  readonly selected: ReadonlySet<string>;
  readonly setSelected: (ids: ReadonlySet<string>) => void;
  readonly onRange: (first: number, end: number) => void;
  readonly names: ReadonlyMap<string, string>;
}

function Grid(props: GridProps): JSX.Element {
  const { project, shown, change, runs, columns, widths, sparks, selected, setSelected, names } = props;
  const handle = useRef<RowsHandle>(null);
  const { line: active, last, set: setActive } = useActive(runs);
  /** The row that was selected last: its line then, and what it shows. */
  const anchor = useRef<{ line: number; spot: Spot | null }>({ line: 0, spot: null });
  /** Whether Shift was down at the last click on a box: its change, which comes next, does not say. */
  const shift = useRef(false);
  const latest = useRef(selected);
  latest.current = selected;
  const lines = runs.layout.lines;

  function move(to: number): void {
    const line = Math.max(0, Math.min(lines - 1, to));
    setActive(line);
    handle.current?.show(line, "nearest");
    handle.current?.element.focus({ preventScroll: true });
  }

  function open(line: number | null): void {
    if (line === null) return;
    const row = runs.row(line);
    if (row) go({ page: "run", project: row.project ?? project, task: row.id, tab: "overview" });
    else toggle(line);
  }

  function toggle(line: number, to?: boolean): void {
    const section = runs.sections[runs.at(line)?.part ?? -1];
    if (section?.title && (to === undefined || to !== section.open)) runs.toggle(section);
  }

  /** Select or unselect a row; with shift, all from the last one to it. */
  async function select(line: number, withShift: boolean): Promise<void> {
    const row = runs.row(line);
    if (!row) return;
    const next = new Set(latest.current);
    const on = !next.has(row.id);
    const { line: before, spot } = anchor.current;
    const from = withShift ? ((spot && runs.lineOf(spot, before)) ?? before) : line;
    const [first, end] = [Math.min(from, line), Math.max(from, line) + 1];
    anchor.current = { line, spot: runs.spotAt(line) };
    await attempt(async () => {
      for (const id of end - first > 1 ? await runs.idsWithin(first, end) : [row.id])
        on ? next.add(id) : next.delete(id);
    });
    setSelected(next); // also after an error, so that the box shows what is selected
  }

  async function selectAll(): Promise<void> {
    let ids: readonly string[] = [];
    if (!selected.size) await attempt(async () => void (ids = await runs.allIds()));
    setSelected(new Set(ids));
  }

  useKeys("Runs", [
    { keys: ["j", "ArrowDown"], shown: "j ↓", does: "Next run", run: () => move((last ?? -1) + 1) },
    { keys: ["k", "ArrowUp"], shown: "k ↑", does: "Run before", run: () => move((last ?? 1) - 1) },
    { keys: ["o"], shown: "o Enter", does: "Open the run, or a group", run: () => open(active) },
    { keys: ["x"], does: "Select the run", run: () => active !== null && void select(active, false) },
    {
      keys: ["X"],
      does: "Select all from the last selected one",
      run: () => active !== null && void select(active, true),
    },
    { keys: ["Escape"], does: "Select none", run: () => setSelected(new Set()) },
  ]);

  function onKeyDown(event: KeyboardEvent): void {
    if (event.target !== handle.current?.element || event.ctrlKey || event.metaKey || event.altKey) return;
    const fit = Math.floor(handle.current.fit()) - 1;
    const actions: Readonly<Record<string, () => void>> = {
      Enter: () => open(active),
      ArrowRight: () => active !== null && toggle(active, true),
      ArrowLeft: () => active !== null && toggle(active, false),
      PageDown: () => move((last ?? 0) + fit),
      PageUp: () => move((last ?? 0) - fit),
      Home: () => move(0),
      End: () => move(lines - 1),
      " ": () => active !== null && void select(active, event.shiftKey),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  const each = [CHECK_WIDTH, ...columns.map((column) => widths.of(column))];
  const template = each.map((width) => `${width}px`).join(" ");
  const whole = each.reduce((sum, width) => sum + width, 0);
  const columnKey = columns.map((column) => column.name).join();
  // A line that shows the same is the same element, so that only lines are drawn that come into sight or change.
  const drawn = useMemo(
    () => new Map<number, { readonly shows: readonly unknown[]; readonly element: ComponentChildren }>(),
    [runs, columnKey, widths.version, sparks, names, JSON.stringify(shown)],
  );

  function line(index: number): ComponentChildren {
    const isGroup = runs.at(index)?.row === -1;
    const row = runs.row(index);
    const shows = [
      isGroup ? props.version : row,
      index === active,
      row && selected.has(row.id),
      row && sparks?.get(row.id),
    ];
    const before = drawn.get(index);
    if (before?.shows.every((one, n) => one === shows[n])) return before.element;
    if (drawn.size > 1000) drawn.clear();
    const element = isGroup ? groupLine(index) : rowLine(index);
    drawn.set(index, { shows, element });
    return element;
  }

  function groupLine(index: number): ComponentChildren {
    const section = runs.sections[runs.at(index)?.part ?? -1];
    if (!section) return null;
    return (
      <div
        key={`g${section.key}`}
        role="row"
        id={`line-${index}`}
        aria-rowindex={index + 2}
        aria-expanded={section.open}
        class={css["groupLine"]}
        data-active={index === active ? "" : undefined}
      >
        <div role="gridcell" aria-colspan={columns.length + 1}>
          <button type="button" class={css["group"]} tabIndex={-1} onClick={() => runs.toggle(section)}>
            <span class={css["arrow"]} data-open={section.open ? "" : undefined} aria-hidden="true">
              ▸
            </span>
            <span>{groupTitle(section, shown, names)}</span>
            <small>
              {counted(section.rows)} {section.rows === 1 ? "run" : "runs"}
            </small>
          </button>
          {section.title?.value !== undefined && section.rows > 1 && (
            <Link
              to={{ page: "compare", project }}
              with={comparison(project, shown, [[shown.group, "is", section.title.value]])}
              class={css["compareGroup"] ?? ""}
              tabIndex={-1}
            >
              Compare
            </Link>
          )}
        </div>
      </div>
    );
  }

  function rowLine(index: number): ComponentChildren {
    const row = runs.row(index);
    const colour = row ? shown.colours[row.id] : undefined;
    const isSelected = row !== undefined && selected.has(row.id);
    return (
      <div
        key={`l${index}`}
        role="row"
        id={`line-${index}`}
        aria-rowindex={index + 2}
        aria-selected={isSelected}
        class={css["row"]}
        data-active={index === active ? "" : undefined}
        onClick={(event) => {
          if ((event.target as Element).closest("a, input, button")) return;
          setActive(index);
          handle.current?.element.focus({ preventScroll: true });
        }}
        onDblClick={() => open(index)}
      >
        <div
          role="gridcell"
          aria-colindex={1}
          class={css["check"]}
          data-colour={colour}
          style={colour === undefined ? undefined : { "--colour": COLOUR_VALUES[colour] }}
        >
          {row && (
            <input
              type="checkbox"
              tabIndex={-1}
              checked={isSelected}
              aria-label={`Select ${row.name}`}
              onClick={(event) => (shift.current = event.shiftKey)}
              onChange={() => void select(index, shift.current)}
            />
          )}
        </div>
        {columns.map((column, place) => {
          const content = row && contentOf({ column, row, project, names, sparks, width: widths.of(column) });
          return (
            <div
              key={column.name}
              role="gridcell"
              aria-colindex={place + 2}
              class={`${css["cell"]} ${place === 0 ? css["first"] : ""}`}
              title={typeof content === "string" ? content : undefined}
              data-right={isRight(column.kind) ? "" : undefined}
              data-short={isShort(column, widths.of(column)) ? "" : undefined}
            >
              {content}
              {row && column.name === "name" && (
                <Menu
                  label={`Mark ${row.name}`}
                  class={css["rowMenu"] ?? ""}
                  items={() => marks([row.id], shown, change)}
                >
                  ⋯
                </Menu>
              )}
            </div>
          );
        })}
      </div>
    );
  }

  return (
    <div style={{ "--columns": template, "--width": `${whole}px`, display: "contents" }} onKeyDownCapture={onKeyDown}>
      <Rows
        key={shown.group}
        count={lines}
        rowHeight={ROW_HEIGHT}
        headHeight={ROW_HEIGHT}
        role={shown.group || shown.pinned.length ? "treegrid" : "grid"}
        label="Runs"
        class={css["rows"]}
        handle={handle}
        onRange={props.onRange}
        attributes={{
          "aria-rowcount": lines + 1,
          "aria-colcount": columns.length + 1,
          "aria-multiselectable": "true",
          ...(active !== null && { "aria-activedescendant": `line-${active}` }),
        }}
        head={
          <Head
            {...{ columns, shown, change, widths, selectAll }}
            selected={!selected.size ? "none" : selected.size < runs.total ? "some" : "all"}
          />
        }
        row={line}
      />
    </div>
  );
}

function groupTitle(section: Section, shown: Shown, names: ReadonlyMap<string, string>): string {
  if (!section.title || section.title.text) return section.title?.text ?? "";
  const { title, kind } = columnOf(shown.group);
  const value = section.title.value ?? null;
  return `${title}: ${value === null ? "none" : textOf(kind, value, names) || "none"}`;
}

function Nothing({ shown, change }: { shown: Shown; change: Change }): JSX.Element {
  const filtered = shown.search || shown.conditions.length || shown.hidden.length || shown.archived;
  if (!filtered) {
    return (
      <Empty title="There are no runs here yet">
        <p>A run appears as soon as a script calls Task.init with this project's name.</p>
      </Empty>
    );
  }
  return (
    <Empty title="No run matches">
      <button type="button" onClick={() => change({ search: "", conditions: [], hidden: [], archived: false })}>
        Show all runs
      </button>
    </Empty>
  );
}

const NO_SECTIONS: readonly Section[] = [];
/** Columns that have ids, and what these are of. */
const IDS = { user: "users", project: "projects", parent: "tasks" } as const;

/** Has the names asked for of what rows and headings of groups have the ids of. */
function useNames({ columns, group }: Shown, rows: readonly Row[], sections: readonly Section[]): void {
  const shown = useSame(columns);
  useEffect(() => {
    for (const [column, kind] of Object.entries(IDS)) {
      const ofRows = shown.includes(column) ? rows.map((row) => row[column]) : [];
      const ofGroups = group === column ? sections.map((section) => section.title?.value) : [];
      wantNames(kind, [...ofRows, ...ofGroups]);
    }
  }, [shown, group, rows, sections]);
}

/** The small curves of the rows; the table is drawn again when some have come. */
function useSparks(project: string, { curve, inside }: Shown): Sparks | null {
  const [, draw] = useReducer<number, void>((times) => times + 1, 0);
  const sparks = useMemo(
    () => (curve ? new Sparks(project, curve, inside, draw) : null),
    [project, curve, inside, draw],
  );
  useEffect(() => () => sparks?.stop(), [sparks]);
  return sparks;
}

function useNarrow(): boolean {
  const [narrow, setNarrow] = useState(innerWidth < 700);
  useEffect(() => {
    const media = matchMedia("(max-width: 699px)");
    const changed = (): void => setNarrow(media.matches);
    changed();
    media.addEventListener("change", changed);
    return () => media.removeEventListener("change", changed);
  }, []);
  return narrow;
}
