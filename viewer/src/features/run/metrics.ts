/** Which scalars a run has. */

import { useEffect, useRef } from "preact/hooks";

import { api } from "../../api/client";
import { follow } from "../../api/live";
import { type Asked, useAsked } from "../../hooks/asked";

/** Each metric with its variants. */
export type Metrics = Readonly<Record<string, readonly string[]>>;

/** They are asked again when the run reports one that is new; and then `onNew` is called. */
export function useMetrics(task: string, onNew?: () => void): Asked<Metrics> {
  const asked = useAsked(task, async (signal) => {
    const answer = await api("events.get_scalar_metrics_and_variants", { task }, signal);
    return answer.metrics;
  });
  const { refresh } = asked;
  const latest = useRef({ metrics: asked.value, onNew });
  latest.current = { metrics: asked.value, onNew };
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = follow({ tasks: [task] }, (change) => {
      const { metrics } = latest.current;
      const isNew =
        change.event === "reset" ||
        (change.event === "scalars" &&
          (!change.series || change.series.some(([metric, variant]) => !metrics?.[metric]?.includes(variant))));
      if (isNew) timer ??= setTimeout(askAgain, PAUSE);
    });
    function askAgain(): void {
      timer = undefined;
      refresh();
      latest.current.onNew?.();
    }
    return () => {
      end();
      clearTimeout(timer);
    };
  }, [task, refresh]);
  return asked;
}

/** Series that come soon after each other are one question. In milliseconds. */
const PAUSE = 500;

/** What machines report of themselves: ":monitor:gpu" and the like. It has a tab of its own. */
export function isOfMachine(metric: string): boolean {
  return metric.startsWith(":monitor:");
}
