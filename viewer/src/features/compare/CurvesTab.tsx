/** The curves of the runs, one over the other; or grouped by what runs have in a column, a curve for each group. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";

import { Charts } from "../../chart/Charts";
import { AXES } from "../../chart/Controls";
import { type ChartSource, type ChartSpec, ofGroups, ofRuns } from "../../chart/source";
import { useView } from "../../chart/useView";
import { finder } from "../../chart/view";
import { useSame } from "../../hooks/same";
import { counted } from "../../lib/times";
import { ALL } from "../../routes";
import { Empty } from "../../ui/Notice";
import { Choice } from "./Choice";
import { type CompareProps, show } from "./props";
import { type Column, isMonitor, type Run } from "./runs";
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
  const { project, view, runs, shown, columns, looks } = props;
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
  const drawn = useSame(lines.map((row) => ({ id: runs[row]!.id, name: runs[row]!.name })));
  const source = useMemo(
    () => (group === BY_RUN ? ofEach(drawn, looks) : ofGroup(drawn, group, bins, view.spread)),
    [drawn, group, bins, view.spread, looks],
  );
  const curves = useSame([...columns.values()].filter(isCurve).flatMap(curveOf));
  const specs = useMemo(() => specsOf(curves, charts.find), [curves, charts.find]);
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

/** The last values of a metric stand for its curve. */
function isCurve(column: Column): boolean {
  return column.kind === "metric" && column.name.startsWith("last:");
}

type Curve = Required<Pick<Column, "name" | "label" | "series">>;

function curveOf({ name, label, series }: Column): Curve[] {
  return series ? [{ name, label, series }] : [];
}

function groups(column: Column): boolean {
  return column.kind === "parameter" || column.name === "status";
}

/** Numbers of any count can be put into ranges. */
function isOffered(column: Column): boolean {
  return column.numbers || new Set(column.values).size <= MOST_GROUPS;
}

type Named = Pick<Run, "id" | "name">;

/** Runs with the same value of a column are one curve. */
function ofGroup(runs: readonly Named[], group: string, bins: number, spread: Spread): ChartSource {
  const ids = runs.map(({ id }) => id);
  const source = ofGroups(ALL, ids, { group, bins: bins || null, spread });
  if (group !== TOGETHER) return source;
  const name = `all ${counted(runs.length)} runs`;
  return { ...source, looks: (curves) => source.looks(curves).map((look) => ({ ...look, name })) };
}

/** Each run is a curve of its own, in the colour that it has on all tabs. */
function ofEach(runs: readonly Named[], looks: CompareProps["looks"]): ChartSource {
  const names = new Map(runs.map(({ id, name }) => [id, name]));
  return {
    ...ofRuns(ALL, runs),
    looks: (curves) =>
      curves.map(({ task = "" }) => ({ key: task, name: names.get(task) ?? task, ...looks.get(task)! })),
  };
}

/** A chart for each curve whose name is looked for; those of machines come last. */
function specsOf(curves: readonly Curve[], find: string): ChartSpec[] {
  const matches = finder(find);
  return curves
    .filter(({ label }) => matches(label))
    .sort((one, other) => Number(isMonitor(one)) - Number(isMonitor(other)))
    .map(({ label, series: [metric, variant] }) => {
      const title = `${metric.replace(/^:monitor:/, "machine: ")} · ${variant}`;
      return { id: label, title, metric, variants: [variant] };
    });
}
