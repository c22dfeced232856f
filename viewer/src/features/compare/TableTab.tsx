/** Results as a table: what differs between the runs, and what came out. The best value of each metric is marked. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";

import { counted, short } from "../../lib/times";
import { Link } from "../../ui/Link";
import { Empty } from "../../ui/Notice";
import { type CompareProps, pointed, show } from "./props";
import { bestRow, type Column, compareValues, differs, directionOf, isMonitor, type Number_, type Value } from "./runs";
import css from "./TableTab.module.css";
import tools from "./tools.module.css";
import { useWindow } from "./window";

const HEIGHT = 32;
const HEAD = 52;
const NUMBER_LABELS: Readonly<Record<Number_, string>> = { last: "last", min: "least", max: "greatest" };
/** More columns than these nobody reads; the field for their names finds the others. */
const MOST_COLUMNS = 60;

export function TableTab({ project, view, runs, columns, shown, colours }: CompareProps): JSX.Element {
  const visible = useMemo(
    () => shownColumns(columns, view.number, view.all, view.only),
    [columns, view.number, view.all, view.only],
  );
  const some = visible.slice(0, MOST_COLUMNS);
  const rows = useMemo(() => sorted(shown, columns, view.sort), [shown, columns, view.sort]);
  const best = useMemo(
    () => new Map(some.map((column) => [column.name, bestOf(column, shown, view.flip)])),
    [some, shown, view.flip],
  );
  const { element, first, behind } = useWindow(rows.length, HEIGHT, HEAD);
  return (
    <>
      <div class={tools["tools"]}>
        <label>
          Metrics show their
          <select value={view.number} onChange={(event) => show({ number: event.currentTarget.value as Number_ })}>
            <option value="last">last value</option>
            <option value="min">least value</option>
            <option value="max">greatest value</option>
          </select>
        </label>
        <label>
          <input type="checkbox" checked={view.all} onChange={(event) => show({ all: event.currentTarget.checked })} />
          also columns in which all are the same
        </label>
        <input
          type="search"
          placeholder="Find columns"
          aria-label="Find columns"
          value={view.only}
          onInput={(event) => show({ only: event.currentTarget.value })}
        />
        {some.length < visible.length && (
          <span>
            The first {counted(some.length)} of {counted(visible.length)} columns
          </span>
        )}
      </div>
      {rows.length === 0 ? (
        <Empty title="No run is shown" />
      ) : (
        <div ref={element} class={css["scroll"]} tabIndex={0} role="region" aria-label="Table of results">
          <table class={css["table"]} role="grid" aria-rowcount={rows.length + 1}>
            <thead>
              <tr aria-rowindex={1}>
                <Head name="name" label="Run" sort={view.sort} numbers={false} class={css["name"] ?? ""} />
                {some.map((column) => (
                  <Head
                    key={column.name}
                    name={column.name}
                    label={column.label}
                    about={aboutOf(column, view.number)}
                    sort={view.sort}
                    numbers={column.numbers}
                    {...(column.kind === "metric" && {
                      better: betterOf(column, view.flip),
                      turn: () => show({ flip: turned(view.flip, column.label) }),
                    })}
                  />
                ))}
              </tr>
            </thead>
            <tbody>
              <Space height={HEIGHT * first} />
              {rows.slice(first, behind).map((row, n) => {
                const run = runs[row]!;
                return (
                  <tr
                    key={run.id}
                    aria-rowindex={first + n + 2}
                    data-pointed={pointed.value === run.id ? "" : undefined}
                    onPointerEnter={() => (pointed.value = run.id)}
                    onPointerLeave={() => (pointed.value = null)}
                  >
                    <th scope="row" class={css["name"]}>
                      <span class={css["dot"]} style={{ background: colours.get(run.id) }} />
                      <Link
                        to={{ page: "run", project: run.project?.id ?? project, task: run.id, tab: "overview" }}
                        title={run.name}
                      >
                        {run.name}
                      </Link>
                    </th>
                    {some.map((column) => (
                      <Cell key={column.name} value={column.values[row]!} best={best.get(column.name) === row} />
                    ))}
                  </tr>
                );
              })}
              <Space height={HEIGHT * (rows.length - behind)} />
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

interface HeadProps {
  name: string;
  label: string;
  about?: string;
  sort: string | null;
  numbers: boolean;
  /** Of a metric: which value is best, null if nobody has said, and what changes that. */
  better?: "least" | "greatest" | null;
  turn?: () => void;
  class?: string;
}

function Head({ name, label, about, sort, numbers, better, turn, class: className }: HeadProps): JSX.Element {
  const [ascending, descending] = [sort === name, sort === `-${name}`];
  const next = ascending ? `-${name}` : descending ? null : name;
  return (
    <th
      scope="col"
      class={className}
      data-numbers={numbers ? "" : undefined}
      aria-sort={ascending ? "ascending" : descending ? "descending" : "none"}
    >
      <button type="button" title={name} onClick={() => show({ sort: next })}>
        {label}
        {ascending ? " ↑" : descending ? " ↓" : ""}
      </button>
      <small>
        {about}
        {turn && (
          <button type="button" class={css["turn"]} title="Change which value is best" onClick={turn}>
            {better === "least" ? "less is better" : better ? "more is better" : "which is best?"}
          </button>
        )}
      </small>
    </th>
  );
}

function Cell({ value, best }: { value: Value; best: boolean }): JSX.Element {
  if (value === null) return <td class={css["none"]}>–</td>;
  if (typeof value === "string") return <td title={value}>{value.length > 60 ? `${value.slice(0, 60)}…` : value}</td>;
  return (
    <td
      data-numbers=""
      data-best={best ? "" : undefined}
      title={best ? `${value}: the best of the runs shown` : String(value)}
    >
      {best && <span class="hidden-but-read">Best: </span>}
      {short(value)}
    </td>
  );
}

/** The room of rows that are not in the document. */
function Space({ height }: { height: number }): JSX.Element | null {
  if (height <= 0) return null;
  return (
    <tr class={css["space"]} aria-hidden="true">
      <td style={{ height: `${height}px` }} />
    </tr>
  );
}

function aboutOf(column: Column, number: Number_): string {
  if (column.kind === "parameter") return "parameter";
  if (column.kind === "field") return "run";
  return NUMBER_LABELS[number];
}

function shownColumns(columns: ReadonlyMap<string, Column>, number: Number_, all: boolean, find: string): Column[] {
  const wanted = find.toLowerCase();
  const shown = [...columns.values()].filter((column) => {
    if (column.name === "name" || (column.kind === "metric" && !column.name.startsWith(`${number}:`))) return false;
    if (wanted) return column.name.toLowerCase().includes(wanted);
    return all || (differs(column) && !isMonitor(column));
  });
  const kinds = ["parameter", "metric", "field"];
  return shown.sort((one, other) => kinds.indexOf(one.kind) - kinds.indexOf(other.kind));
}

function sorted(rows: readonly number[], columns: ReadonlyMap<string, Column>, sort: string | null): readonly number[] {
  const column = columns.get(sort?.replace(/^-/, "") ?? "");
  if (!column) return rows;
  const sign = sort!.startsWith("-") ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [column.values[one]!, column.values[other]!];
    return a === null || b === null ? compareValues(a, b) : sign * compareValues(a, b);
  });
}

/** The row that is best among those shown; −1 if nobody knows what is best, or there is one row only. */
function bestOf(column: Column, rows: readonly number[], flip: readonly string[]): number {
  const better = column.kind === "metric" ? betterOf(column, flip) : null;
  if (better === null || rows.length < 2) return -1;
  const best = bestRow(
    rows.map((row) => column.values[row]!),
    better === "least",
  );
  return rows[best] ?? -1;
}

/** Which value is best: what the name says, turned round by `label` in `flip`. If it says nothing: `label` means the greatest, `-label` the least. */
function betterOf({ label }: Column, flip: readonly string[]): "least" | "greatest" | null {
  const [known, turned] = [directionOf(label), flip.includes(label)];
  if (known) return (known === "least") !== turned ? "least" : "greatest";
  return turned ? "greatest" : flip.includes(`-${label}`) ? "least" : null;
}

/** A click turns round what is best; where the name says nothing, it goes from none to the greatest, the least, and none. */
function turned(flip: readonly string[], label: string): string[] {
  const others = flip.filter((one) => one !== label && one !== `-${label}`);
  if (flip.includes(label)) return directionOf(label) ? others : [...others, `-${label}`];
  return flip.includes(`-${label}`) ? others : [...others, label];
}
