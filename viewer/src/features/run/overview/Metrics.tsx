/** The last, least and greatest value of each curve. While the run goes on, they follow it. */

import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";

import { api } from "../../../api/client";
import type { LastMetric } from "../../../api/endpoints";
import { useAsked } from "../../../hooks/asked";
import { useChanges } from "../../../hooks/changes";
import { counted, short } from "../../../lib/times";
import { SearchField } from "../../../ui/SearchField";
import { Section } from "../../../ui/Section";
import type { Task } from "../task";
import { type Details, metricsOf } from "./details";
import css from "./Overview.module.css";

const MOST = 100;
/** The table is asked for anew at most so often, in ms. */
const PAUSE = 2000;
/** The iteration of values that were reported without one. */
const SINGLE = -(2 ** 31);

export function Metrics({ task, found }: { task: Task; found: Details["last_metrics"] }): JSX.Element | null {
  const [search, setSearch] = useState("");
  const [all, setAll] = useState(false);
  const metrics = metricsOf(useNewest(task) ?? found);
  if (!metrics.length) return null;
  const matching = metrics.filter((one) => `${one.metric}/${one.variant}`.toLowerCase().includes(search.toLowerCase()));
  const shown = matching.slice(0, all ? 5000 : MOST);
  return (
    <Section
      title="Last metrics"
      count={metrics.length}
      tools={<SearchField label="Search metrics" value={search} onInput={setSearch} />}
    >
      <div class={css["scroll"]}>
        <table class={css["numbers"]}>
          <thead>
            <tr>
              <th scope="col">Metric</th>
              <th scope="col">Last</th>
              <th scope="col">Least</th>
              <th scope="col">Greatest</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((one) => (
              <Row key={`${one.metric}\n${one.variant}`} metric={one} />
            ))}
          </tbody>
        </table>
      </div>
      {matching.length > shown.length && !all && (
        <button type="button" class={css["small"]} onClick={() => setAll(true)}>
          Show all {counted(matching.length)}
        </button>
      )}
    </Section>
  );
}

function Row({ metric: one }: { metric: LastMetric }): JSX.Element {
  return (
    <tr>
      <th scope="row">
        {one.metric}
        <span class={css["soft"]}> / {one.variant}</span>
      </th>
      <td>{number(one.value)}</td>
      <Extreme value={one.min_value} iteration={one.min_value_iteration} />
      <Extreme value={one.max_value} iteration={one.max_value_iteration} />
    </tr>
  );
}

type Value = number | null | undefined;

function Extreme({ value, iteration }: { value: Value; iteration: Value }): JSX.Element {
  const where =
    typeof iteration !== "number" || iteration === SINGLE ? undefined : `at iteration ${counted(iteration)}`;
  return <td title={where}>{number(value)}</td>;
}

function number(value: Value): string {
  return typeof value === "number" ? short(value) : "";
}

/** The metrics as they are now, once the run has reported again; null before. */
function useNewest(task: Task): Details["last_metrics"] | null {
  const [wanted, setWanted] = useState(false);
  const asked = useAsked(wanted ? task.id : null, async (signal) => {
    const body = { id: [task.id], only_fields: ["last_metrics"], search_hidden: true } as const;
    const { tasks } = await api("tasks.get_all_ex", body, signal);
    return tasks[0]?.last_metrics ?? {};
  });
  const { refresh } = asked;
  const askAgain = useCallback(() => {
    setWanted(true);
    refresh();
  }, [refresh]);
  useChanges(task.last_update, askAgain, PAUSE);
  return asked.value;
}
