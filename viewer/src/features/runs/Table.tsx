/**
 * The table of a project's runs. The address says what it shows (`shown.ts`); `sections.ts` asks for the rows that are
 * seen; this has curves and names asked for them, and knows which are selected. `Grid.tsx` draws them.
 */

import type { JSX } from "preact";
import { useCallback, useEffect, useMemo, useReducer, useRef, useState } from "preact/hooks";

import { wordsOf } from "../../api/errors";
import { useSame } from "../../hooks/same";
import { adjust, query } from "../../state/address";
import { namesById, wantNames } from "../../state/names";
import { Empty, Failed, Waiting } from "../../ui/Notice";
import { Actions } from "./Actions";
import { Bar } from "./Bar";
import { CURVE, columnOf } from "./columns";
import { Grid } from "./Grid";
import { useWidths } from "./Head";
import type { Row, Section } from "./sections";
import { type Change, FEW_COLUMNS, parametersOf, type Shown, shownOf } from "./shown";
import { Sparks } from "./sparks";
import css from "./Table.module.css";
import { useLive, useRuns } from "./useRuns";
import { useUsualColumns } from "./usual";

/** Rows above and below those that are drawn, which are asked for, too. */
const AHEAD = 100;
/** Milliseconds without a move after which rows are followed, and their curves and names asked for. */
const RESTED = 100;
/** Pixels of the name on a phone. */
const NARROW_NAME = 170;
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
