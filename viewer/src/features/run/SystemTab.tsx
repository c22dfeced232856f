/** The tab "System" of a run: what machines and GPUs report of themselves, over time. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";

import { Charts } from "../../chart/Charts";
import { AXES } from "../../chart/Controls";
import { systemCharts } from "../../chart/sections";
import { ofRun } from "../../chart/source";
import { useView } from "../../chart/useView";
import { finder } from "../../chart/view";
import { Empty, Failed, Waiting } from "../../ui/Notice";
import { isOfMachine, useMetrics } from "./metrics";
import type { TabProps } from "./task";

export function SystemTab({ task }: TabProps): JSX.Element {
  const asked = useMetrics(task.id);
  const [view, onView] = useView("pins.system", "timestamp");
  const source = useMemo(() => ofRun(task.id), [task.id]);
  const charts = useMemo(() => {
    const some = Object.entries(asked.value ?? {}).filter(([metric]) => isOfMachine(metric));
    return systemCharts(Object.fromEntries(some), finder(view.find));
  }, [asked.value, view.find]);
  if (asked.error && !asked.value) return <Failed error={asked.error} again={asked.again} />;
  if (!asked.value) return <Waiting />;
  if (!charts.length && !view.find) {
    return (
      <Empty title="No machine has reported anything">
        <p>ClearML's SDK reports the load of the machine and its GPUs some minutes after a run began.</p>
      </Empty>
    );
  }
  return <Charts source={source} charts={charts} view={view} onView={onView} name="system" axes={AXES} />;
}
