/** Draws the rows of the table that are seen, and knows which one is active: the one that keys act on. */

import type { ComponentChildren, JSX } from "preact";
import { useMemo, useRef } from "preact/hooks";

import { Rows, type RowsHandle } from "../../scroll/Rows";
import { go } from "../../state/address";
import { useActive } from "./active";
import type { Column } from "./columns";
import { actionOf, type Moves, useGridKeys } from "./gridKeys";
import { Head, type Widths } from "./Head";
import { GroupLine, RunLine } from "./Lines";
import type { Runs } from "./sections";
import { useSelecting } from "./selecting";
import type { Change, Shown } from "./shown";
import type { Sparks } from "./sparks";
import css from "./Table.module.css";

const ROW_HEIGHT = 32;
const CHECK_WIDTH = 34;

interface GridProps {
  readonly project: string;
  readonly shown: Shown;
  readonly change: Change;
  readonly runs: Runs;
  readonly version: number;
  readonly columns: readonly Column[];
  readonly widths: Widths;
  readonly sparks: Sparks | null;
  readonly selected: ReadonlySet<string>;
  readonly setSelected: (ids: ReadonlySet<string>) => void;
  readonly onRange: (first: number, end: number) => void;
  readonly names: ReadonlyMap<string, string>;
}

export function Grid(props: GridProps): JSX.Element {
  const { project, shown, change, runs, columns, widths, selected, setSelected } = props;
  const handle = useRef<RowsHandle>(null);
  const { line: active, last, set: setActive } = useActive(runs);
  const { select, selectAll } = useSelecting(runs, selected, setSelected);
  const lines = runs.layout.lines;

  function activate(line: number): void {
    setActive(line);
    handle.current?.element.focus({ preventScroll: true });
  }

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

  const moves: Moves = { active, last, lines, move, open, toggle, select, selectNone: () => setSelected(new Set()) };
  useGridKeys(moves);

  function onKeyDown(event: KeyboardEvent): void {
    if (event.target !== handle.current?.element || event.ctrlKey || event.metaKey || event.altKey) return;
    const action = actionOf(event, Math.floor(handle.current.fit()) - 1, moves);
    if (!action) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  const line = useLines(props, { active, activate, open, select });
  const places = [CHECK_WIDTH, ...columns.map((column) => widths.of(column))];
  const template = places.map((width) => `${width}px`).join(" ");
  const whole = places.reduce((sum, width) => sum + width, 0);
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

interface Acts {
  readonly active: number | null;
  readonly activate: (line: number) => void;
  readonly open: (line: number) => void;
  readonly select: (line: number, withShift: boolean) => Promise<void>;
}

/**
 * Draws a line. One that shows the same is the same element, so that only lines are drawn that come into sight or change.
 */
function useLines(props: GridProps, { active, activate, open, select }: Acts): (index: number) => ComponentChildren {
  const { runs, version, shown, columns, widths, sparks, selected, names } = props;
  const columnKey = columns.map((column) => column.name).join();
  const drawn = useMemo(
    () => new Map<number, { readonly shows: readonly unknown[]; readonly element: ComponentChildren }>(),
    [runs, columnKey, widths.version, sparks, names, JSON.stringify(shown)],
  );

  function elementOf(index: number): ComponentChildren {
    const { project, change } = props;
    const place = runs.at(index);
    const shared = { index, isActive: index === active, project, shown, columns, names };
    if (place?.row !== -1) {
      const row = runs.row(index);
      const isSelected = row !== undefined && selected.has(row.id);
      const acts = { change, activate, open, select: (line: number, shift: boolean) => void select(line, shift) };
      return <RunLine key={`l${index}`} {...shared} {...acts} {...{ row, isSelected, widths, sparks }} />;
    }
    const section = runs.sections[place.part];
    if (!section) return null;
    return <GroupLine key={`g${section.key}`} {...shared} section={section} toggle={() => runs.toggle(section)} />;
  }

  return (index) => {
    const row = runs.row(index);
    const content = runs.at(index)?.row === -1 ? version : row;
    const shows = [content, index === active, row && selected.has(row.id), row && sparks?.get(row.id)];
    const before = drawn.get(index);
    if (before?.shows.every((part, n) => part === shows[n])) return before.element;
    if (drawn.size > 1000) drawn.clear();
    const element = elementOf(index);
    drawn.set(index, { shows, element });
    return element;
  };
}
