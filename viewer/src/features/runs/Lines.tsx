/** The lines of the table: of a run, and of the heading of a group. */

import type { JSX } from "preact";
import { useRef } from "preact/hooks";

import { counted } from "../../lib/times";
import { Link } from "../../ui/Link";
import { Menu } from "../../ui/Menu";
import { contentOf } from "./Cell";
import { type Column, columnOf, isRight, isShort, textOf } from "./columns";
import type { Widths } from "./Head";
import { marks } from "./marks";
import type { Row, Section } from "./sections";
import { type Change, comparison, type Shown } from "./shown";
import type { Sparks } from "./sparks";
import css from "./Table.module.css";

const COLOUR_VALUES = ["#2563eb", "#e8590c", "#2b8a3e", "#c2255c", "#7048e8", "#0c8599", "#a16207", "#57606a"];

/** What all lines of a table are drawn with. */
interface LineProps {
  readonly index: number;
  readonly isActive: boolean;
  readonly project: string;
  readonly shown: Shown;
  readonly columns: readonly Column[];
  readonly names: ReadonlyMap<string, string>;
}

interface GroupProps extends LineProps {
  readonly section: Section;
  readonly toggle: () => void;
}

export function GroupLine({
  index,
  isActive,
  project,
  shown,
  columns,
  names,
  section,
  toggle,
}: GroupProps): JSX.Element {
  return (
    <div
      role="row"
      id={`line-${index}`}
      aria-rowindex={index + 2}
      aria-expanded={section.open}
      class={css["groupLine"]}
      data-active={isActive ? "" : undefined}
    >
      <div role="gridcell" aria-colspan={columns.length + 1}>
        <button type="button" class={css["group"]} tabIndex={-1} onClick={toggle}>
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

function groupTitle(section: Section, shown: Shown, names: ReadonlyMap<string, string>): string {
  if (!section.title || section.title.text) return section.title?.text ?? "";
  const { title, kind } = columnOf(shown.group);
  const value = section.title.value ?? null;
  return `${title}: ${value === null ? "none" : textOf(kind, value, names) || "none"}`;
}

interface RunProps extends LineProps {
  /** undefined: it is on its way. */
  readonly row: Row | undefined;
  readonly isSelected: boolean;
  readonly change: Change;
  readonly widths: Widths;
  readonly sparks: Sparks | null;
  readonly activate: (line: number) => void;
  readonly open: (line: number) => void;
  readonly select: (line: number, withShift: boolean) => void;
}

export function RunLine(props: RunProps): JSX.Element {
  const { index, isActive, isSelected, columns, activate, open } = props;
  return (
    <div
      role="row"
      id={`line-${index}`}
      aria-rowindex={index + 2}
      aria-selected={isSelected}
      class={css["row"]}
      data-active={isActive ? "" : undefined}
      onClick={(event) => {
        if (!(event.target as Element).closest("a, input, button")) activate(index);
      }}
      onDblClick={() => open(index)}
    >
      <Box {...props} />
      {columns.map((column, place) => cell(props, column, place))}
    </div>
  );
}

/** The box that selects a run, in the run's colour. */
function Box({ index, row, isSelected, shown, select }: RunProps): JSX.Element {
  /** Whether Shift was down at the last click: its change, which comes next, does not say. */
  const shift = useRef(false);
  const colour = row ? shown.colours[row.id] : undefined;
  return (
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
          onChange={() => select(index, shift.current)}
        />
      )}
    </div>
  );
}

/** Not a component: there are a thousand cells. */
function cell(props: RunProps, column: Column, place: number): JSX.Element {
  const { row, project, shown, change, names, sparks, widths } = props;
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
        <Menu label={`Mark ${row.name}`} class={css["rowMenu"] ?? ""} items={() => marks([row.id], shown, change)}>
          ⋯
        </Menu>
      )}
    </div>
  );
}
