/** The curves of the runs, one over the other; or grouped by what runs have in a column, a curve for each group. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";

import { Charts } from "../../chart/Charts";
import { AXES } from "../../chart/Controls";
import { type ChartSource, type ChartSpec, ofGroups, ofRuns } from "../../chart/source";
import { useView } from "../../chart/useView";
import { finder } from "../../chart/view";
import { counted } from "../../lib/times";
import { ALL } from "../../routes";
import { Empty } from "../../ui/Notice";
import { Choice } from "./Choice";
import { type CompareProps, show } from "./props";
import { type Column, isMonitor } from "./runs";
import type { Spread } from "./view";

/** In the place of a column that groups: each run has its own line … */
const BY_RUN = "run";
/** … or all runs are one group. */
const TOGETHER = "*";
/** More lines than these tell nothing: runs are then put together, unless somebody says otherwise. */
const MOST_LINES = 200;
/** Runs are grouped by what has at most so many values: more curves than these tell nothing. */
const MOST_GROUPS = 50;
/** Numbers of which there are more may be grouped by ranges, into so many groups, or usually into the first of these. */
const FEW_NUMBERS = 10;
const BINS = [5, 3, 10];

export function CurvesTab(props: CompareProps): JSX.Element {
  const { project, view, runs, shown, columns } = props;
  const [charts, onView] = useView(`pins.${project}`);
  const group = view.group ?? (shown.length > MOST_LINES ? TOGETHER : BY_RUN);
  const tooMany = useMemo(
    () => [...columns.values()].filter((one) => groups(one) && !isOffered(one)).length,
    [columns],
  );
  const column = columns.get(group);
  const count = useMemo(() => (column?.numbers ? new Set(column.values).size : 0), [column]);
  const bins = view.bins ?? (count > MOST_GROUPS ? BINS[0]! : 0);
  const lines = group === BY_RUN ? shown.slice(0, MOST_LINES) : shown;
  const ids = lines.map((row) => runs[row]!.id).join();
  const source = useMemo(() => sourceOf(props, lines, group, bins), [ids, group, bins, view.spread, props.looks]);
  const curves = [...columns.values()].filter((one) => one.kind === "metric" && one.name.startsWith("last:"));
  const names = curves.map(({ name }) => name).join("\n");
  const specs = useMemo(() => specsOf(curves, charts.find), [names, charts.find]);
  if (!shown.length) return <Empty title="No run is shown" />;
  return (
    <Charts source={source} charts={specs} view={charts} onView={onView} name="compare" axes={AXES}>
      <Choice
        label="Group"
        columns={columns}
        value={group}
        others={{ [BY_RUN]: "each run", [TOGETHER]: "all together" }}
        only={(column) => column.name === group || (groups(column) && isOffered(column))}
        choose={(name) => show({ group: name, bins: null }, { push: true })}
      />
      {count > FEW_NUMBERS && (
        <label>
          <span>Ranges</span>
          <select value={bins} onChange={(event) => show({ bins: Number(event.currentTarget.value) }, { push: true })}>
            {(count <= MOST_GROUPS || bins === 0) && <option value={0}>each value</option>}
            {[...new Set([...BINS, ...(bins ? [bins] : [])])]
              .toSorted((a, b) => a - b)
              .map((one) => (
                <option key={one} value={one}>
                  {one} ranges
                </option>
              ))}
          </select>
        </label>
      )}
      {tooMany > 0 && (
        <span role="note" title={`A group for each text of a parameter: at most ${MOST_GROUPS} are offered`}>
          without {counted(tooMany)} {tooMany === 1 ? "parameter" : "parameters"} of more than {MOST_GROUPS} values
        </span>
      )}
      {group !== BY_RUN && (
        <label>
          <span>Band</span>
          <select value={view.spread} onChange={(event) => show({ spread: event.currentTarget.value as Spread })}>
            <option value="deviation">mean ± deviation</option>
            <option value="quartiles">median, quartiles</option>
            <option value="extremes">mean, extremes</option>
          </select>
        </label>
      )}
      {lines.length < shown.length && (
        <span role="note">
          {counted(lines.length)} of {counted(shown.length)} runs are drawn
        </span>
      )}
    </Charts>
  );
}

function groups(column: Column): boolean {
  return column.kind === "parameter" || column.name === "status";
}

/** Numbers of any count can be put into ranges. */
function isOffered(column: Column): boolean {
  return column.numbers || new Set(column.values).size <= MOST_GROUPS;
}

function sourceOf(
  { runs, view, looks }: CompareProps,
  rows: readonly number[],
  group: string,
  bins: number,
): ChartSource {
  const some = rows.map((row) => runs[row]!);
  if (group !== BY_RUN) {
    const source = ofGroups(
      ALL,
      some.map(({ id }) => id),
      { group, bins: bins || null, spread: view.spread },
    );
    if (group !== TOGETHER) return source;
    const name = `all ${counted(some.length)} runs`;
    return { ...source, looks: (curves) => source.looks(curves).map((look) => ({ ...look, name })) };
  }
  const names = new Map(some.map(({ id, name }) => [id, name]));
  return {
    ...ofRuns(ALL, some),
    looks: (curves) =>
      curves.map(({ task = "" }) => ({ key: task, name: names.get(task) ?? task, ...looks.get(task)! })),
  };
}

/** A chart for each curve whose name is looked for; those of machines come last. */
function specsOf(columns: readonly Column[], find: string): ChartSpec[] {
  const found = finder(find);
  const ordered = [...columns].sort((one, other) => Number(isMonitor(one)) - Number(isMonitor(other)));
  return ordered.flatMap(({ label, series }) => {
    if (!series || !found(label)) return [];
    const [metric, variant] = series;
    return [
      { id: label, title: `${metric.replace(/^:monitor:/, "machine: ")} · ${variant}`, metric, variants: [variant] },
    ];
  });
}
