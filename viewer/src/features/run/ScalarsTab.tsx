/** The tab "Scalars" of a run: its curves, but for those of the machine. */

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";

import { api } from "../../api/client";
import type { SingleValue } from "../../api/endpoints";
import { Charts } from "../../chart/Charts";
import { AXES, type AxisOption } from "../../chart/Controls";
import { chartsOf, MOST_LINES } from "../../chart/sections";
import { type ChartSpec, ofRun } from "../../chart/source";
import { useView } from "../../chart/useView";
import { finder } from "../../chart/view";
import { useAsked } from "../../hooks/asked";
import type { MenuItem } from "../../ui/Menu";
import { Empty, Failed, Waiting } from "../../ui/Notice";
import { isOfMachine, type Metrics, useMetrics } from "./metrics";
import { SingleValues } from "./SingleValues";
import type { TabProps } from "./task";

export function ScalarsTab({ task }: TabProps): JSX.Element {
  const single = useAsked(task.id, (signal) => singleValues(task.id, signal));
  const asked = useMetrics(task.id, single.refresh);
  const [view, onView] = useView(`pins.${task.project?.id ?? ""}`);
  /** How many lines a chart has, of those that were asked to show more. */
  const [more, setMore] = useState<ReadonlyMap<string, number>>(new Map());
  const source = useMemo(() => ofRun(task.id), [task.id]);
  const metrics = useMemo(() => withPoints(asked.value ?? {}, single.value), [asked.value, single.value]);
  const charts = useMemo(() => chartsOf(metrics, finder(view.find), more), [metrics, view.find, more]);
  const axes = useMemo(() => [...AXES, ...curvesAsAxes(metrics)], [metrics]);
  if (asked.error && !asked.value) return <Failed error={asked.error} again={asked.again} />;
  if (!asked.value) return <Waiting />;
  if (!Object.keys(metrics).length && !single.value?.length) {
    return (
      <Empty title="There are no scalars yet">
        <p>They appear here as soon as the run reports them: logger.report_scalar(…)</p>
      </Empty>
    );
  }
  function items({ metric, variants, of }: ChartSpec): MenuItem[] {
    if (of === undefined) return [];
    const shown = variants?.length ?? MOST_LINES;
    return [{ label: "Show more lines", run: () => setMore(new Map(more).set(metric, shown * 2)) }];
  }
  return (
    <>
      <SingleValues values={single.value ?? []} />
      <Charts source={source} charts={charts} view={view} onView={onView} name="scalars" axes={axes} items={items} />
    </>
  );
}

async function singleValues(task: string, signal: AbortSignal): Promise<readonly SingleValue[]> {
  const answer = await api("events.get_task_single_value_metrics", { tasks: [task] }, signal);
  return answer.tasks.flatMap(({ values }) => values);
}

/** Without what machines report, and without the metric that the SDK gives to single values, which has no points. */
function withPoints(metrics: Metrics, single: readonly SingleValue[] | null): Metrics {
  const alone = single && new Set(single.filter(({ metric }) => metric === SINGLE).map(({ variant }) => variant));
  const isSingle = (variants: readonly string[]): boolean => !alone || variants.every((variant) => alone.has(variant));
  const some = Object.entries(metrics).filter(
    ([metric, variants]) => !isOfMachine(metric) && !(metric === SINGLE && isSingle(variants)),
  );
  return Object.fromEntries(some);
}

/** The metric of single values, as the SDK calls it. */
const SINGLE = "Summary";

/** Curves to draw others against: more would make the list too long to choose from. */
const MOST_AXES = 100;

function curvesAsAxes(metrics: Metrics): AxisOption[] {
  const all = Object.entries(metrics).flatMap(([metric, variants]) => variants.map((variant) => ({ metric, variant })));
  return all.slice(0, MOST_AXES).map((axis) => ({ label: `${axis.metric}/${axis.variant}`, axis }));
}
