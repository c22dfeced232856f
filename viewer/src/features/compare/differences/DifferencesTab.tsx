/** What the runs were made of: parameters, configuration, code, packages. By default only what differs. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";

import { useAsked } from "../../../hooks/asked";
import { useSame } from "../../../hooks/same";
import { counted } from "../../../lib/times";
import { Dialog } from "../../../ui/Dialog";
import { Empty, Failed, Waiting } from "../../../ui/Notice";
import { withBrush } from "../brush";
import { tasksOf } from "../load";
import { type CompareProps, show } from "../props";
import tools from "../tools.module.css";
import css from "./DifferencesTab.module.css";
import { linesOf } from "./diff";
import { countsOf, DETAIL_FIELDS, type Details, type Row, sectionsOf, shownRows } from "./differences";
import { TextDiff } from "./TextDiff";

/** More runs than these have no column each: their values are counted. */
const MOST_COLUMNS = 24;
const MOST_VALUES = 30;

export function DifferencesTab(props: CompareProps): JSX.Element {
  const { view, runs, shown } = props;
  const ids = useSame(shown.map((row) => runs[row]!.id));
  const key = runs.map((run) => `${run.id} ${run.status}`).join();
  const asked = useAsked(key, (signal) =>
    tasksOf(
      runs.map((run) => run.id),
      DETAIL_FIELDS,
      signal,
    ),
  );
  const details = useMemo(() => {
    const byId = new Map((asked.value ?? []).map((one) => [one.id, one]));
    return ids.map((id) => byId.get(id)).filter((one) => one !== undefined);
  }, [asked.value, ids]);
  const sections = useMemo(() => sectionsOf(details), [details]);
  if (asked.error && !asked.value) return <Failed error={asked.error} again={asked.again} />;
  if (!asked.value) return <Waiting />;
  if (!details.length) return <Empty title="No run is shown" />;
  const visible = sections
    .map((section) => ({ section, rows: shownRows(section, view.all, view.only) }))
    .filter(({ rows }) => rows.length);
  const inColumns = details.length <= MOST_COLUMNS;
  return (
    <>
      <div class={tools["tools"]}>
        <label>
          <input type="checkbox" checked={view.all} onChange={(event) => show({ all: event.currentTarget.checked })} />
          also what is the same in all runs
        </label>
        <input
          type="search"
          placeholder="Find names and values"
          aria-label="Find names and values"
          value={view.only}
          onInput={(event) => show({ only: event.currentTarget.value })}
        />
        <span role="status">
          {summary(
            sections.reduce((sum, section) => sum + section.different, 0),
            details.length,
          )}
        </span>
      </div>
      {!visible.length ? (
        <Empty title={view.only ? "Nothing that differs is named so" : "Nothing differs between these runs"} />
      ) : (
        <div class={css["scroll"]} tabIndex={0} role="region" aria-label="Differences">
          <table class={css["table"]}>
            {inColumns && <Heads {...props} details={details} />}
            {visible.map(({ section, rows }) => (
              <tbody key={section.title}>
                <tr class={css["section"]}>
                  <th scope="rowgroup" colSpan={inColumns ? details.length + 1 : 2}>
                    {section.title}
                    <small>
                      {counted(section.different)} of {counted(section.rows.length)} differ
                    </small>
                  </th>
                </tr>
                {rows.map((row) => (
                  <tr key={row.key} data-row={row.key}>
                    <th scope="row" class={css["name"]}>
                      {row.name}
                    </th>
                    {inColumns ? <Values row={row} details={details} /> : <Counts {...props} row={row} />}
                  </tr>
                ))}
              </tbody>
            ))}
          </table>
        </div>
      )}
      {view.text !== null && (
        <OpenText {...props} details={details} rows={sections.flatMap((section) => section.rows)} />
      )}
    </>
  );
}

function summary(different: number, runs: number): string {
  if (runs === 1) return "One run is shown: choose another to see differences";
  return `${counted(different)} ${different === 1 ? "value differs" : "values differ"} between ${counted(runs)} runs`;
}

function Heads({ details, runs, base, colours }: CompareProps & { details: readonly Details[] }): JSX.Element {
  return (
    <thead>
      <tr>
        <th scope="col" class={css["name"]}>
          <span class="hidden-but-read">What</span>
        </th>
        {details.map((one) => (
          <th key={one.id} scope="col">
            <span class={css["dot"]} style={{ background: colours.get(one.id) }} />
            <span class={css["run"]} title={one.name}>
              {one.name}
            </span>
            {runs[base]?.id === one.id && <span class={css["base"]}>base</span>}
          </th>
        ))}
      </tr>
    </thead>
  );
}

/** A cell for each run; what is not as in the first one stands out. */
function Values({ row, details }: { row: Row; details: readonly Details[] }): JSX.Element {
  return (
    <>
      {row.values.map((value, n) => (
        <td key={details[n]!.id} data-other={n > 0 && value !== row.values[0] ? "" : undefined}>
          {row.text ? <TextCell row={row} at={n} details={details} /> : <Plain value={value} />}
        </td>
      ))}
    </>
  );
}

function Plain({ value }: { value: string | null }): JSX.Element {
  return value === null ? <span class={css["none"]}>–</span> : <span class={css["value"]}>{value}</span>;
}

function TextCell({ row, at, details }: { row: Row; at: number; details: readonly Details[] }): JSX.Element {
  const value = row.values[at] ?? null;
  if (value === row.values[0] && at > 0) return <span class={css["none"]}>the same</span>;
  const lines = value === null ? 0 : linesOf(value).length;
  const other = at > 0 ? at : row.values.findIndex((one) => one !== value);
  return (
    <>
      {value === null ? "nothing" : `${counted(lines)} ${lines === 1 ? "line" : "lines"}`}{" "}
      {other > 0 && (at > 0 || details.length === 2) && (
        <button
          type="button"
          class={css["open"]}
          onClick={() => show({ text: row.key, other: details[other]!.id }, { push: true })}
        >
          Compare lines
        </button>
      )}
    </>
  );
}

/** How many runs have which value. A click on a parameter's value chooses them. */
function Counts({ row, view, columns }: CompareProps & { row: Row }): JSX.Element {
  const counts = countsOf(row.values);
  const column = columns.get(row.key.replace(/^Parameters: /, "hyperparams."));
  function choose(value: string): void {
    const number = Number(value);
    const brush = column?.numbers
      ? { column: column.name, from: number, to: number }
      : { column: column!.name, texts: [value] };
    show({ brush: withBrush(view.brush, column!.name, brush) }, { push: true });
  }
  return (
    <td>
      <div class={css["counts"]}>
        {counts.slice(0, MOST_VALUES).map(({ value, runs }) => {
          const said = value === null ? "nothing" : row.text ? firstLine(value) : value;
          const content = (
            <>
              <span>{said}</span>
              <i>{counted(runs)}</i>
            </>
          );
          return column && value !== null ? (
            <button
              key={value}
              type="button"
              class={css["count"]}
              title="Choose these runs"
              onClick={() => choose(value)}
            >
              {content}
            </button>
          ) : (
            <span key={value} class={css["count"]}>
              {content}
            </span>
          );
        })}
        {counts.length > MOST_VALUES && <span>and {counted(counts.length - MOST_VALUES)} others</span>}
      </div>
    </td>
  );
}

function firstLine(text: string): string {
  const line = text.split("\n", 1)[0] ?? "";
  return line.length > 60 ? `${line.slice(0, 60)}…` : `${line} …`;
}

function OpenText({
  view,
  details,
  rows,
}: CompareProps & { details: readonly Details[]; rows: readonly Row[] }): JSX.Element | null {
  const row = rows.find((one) => one.key === view.text);
  const at = details.findIndex((one) => one.id === view.other);
  const [first, other] = [details[0], details[at]];
  if (!row || !first || !other) return null;
  return (
    <Dialog wide title={row.name} onClose={() => show({ text: null, other: null })}>
      <TextDiff
        left={{ title: first.name, text: row.values[0] ?? "" }}
        right={{ title: other.name, text: row.values[at] ?? "" }}
      />
    </Dialog>
  );
}
