/** What the tabs "Plots" and "Images" ask the server for. */

import { useEffect, useState } from "preact/hooks";

import { api, data } from "../api/client";
import type { Plot, PlotSampleResponse, ReportedMetric } from "../api/endpoints";
import { follow } from "../api/live";

/** The type of events, as the API names it. */
export type SampleType = "plot" | "training_debug_image";

/** The metrics of a run that have plots or images, by name. */
export async function metricsOf(task: string, type: SampleType, signal: AbortSignal): Promise<ReportedMetric[]> {
  const asked = { tasks: [task], event_type: type };
  const { metrics } = await api("events.get_multi_task_metrics", asked, signal);
  return metrics.toSorted((one, other) => one.metric.localeCompare(other.metric, "en", { numeric: true }));
}

/** The plots of a metric at one iteration, and the iterations that there are. */
export interface PlotsAt {
  readonly plots: readonly Plot[];
  readonly least: number;
  readonly greatest: number;
  /** Begins a walk to the iterations before and after. */
  readonly scroll: string;
}

/** The plots of a metric at an iteration, or else the last ones before; the newest if it is null. */
export async function plotsAt(task: string, metric: string, at: number | null, signal: AbortSignal): Promise<PlotsAt> {
  const asked = { task, metric, ...(at !== null && { iteration: at }), navigate_current_metric: true };
  const found = read(await api("events.get_plot_sample", asked, signal));
  // Before the first iteration there is nothing: the first one is better than an empty page.
  if (found.plots.length || at === null) return found;
  const { least } = await plotsAt(task, metric, null, signal);
  return read(await api("events.get_plot_sample", { ...asked, iteration: least }, signal));
}

/** The plots of the iteration before (-1) or after (1); null if there is none. */
export async function plotsBeside(task: string, from: PlotsAt, step: -1 | 1): Promise<PlotsAt | null> {
  const asked = { task, scroll_id: from.scroll, navigate_earlier: step < 0, next_iteration: true };
  const found = read(await api("events.next_plot_sample", asked));
  return found.plots.length ? found : null;
}

function read(answer: PlotSampleResponse): PlotsAt {
  const { events, min_iteration: least, max_iteration: greatest, scroll_id: scroll } = answer;
  return { plots: events, least: least ?? 0, greatest: greatest ?? 0, scroll };
}

/** The newest plots of some series: those that have none at a metric's newest iteration. */
export async function newestPlots(
  task: string,
  metric: string,
  variants: readonly string[],
  signal: AbortSignal,
): Promise<readonly Plot[]> {
  const asked = { task, iters: 1, no_scroll: true, metrics: [{ metric, variants }] };
  return (await api("events.get_task_plots", asked, signal)).plots;
}

export interface ImageRow {
  readonly metric: string;
  readonly variant: string;
  readonly iter: number;
  readonly timestamp: number;
  readonly url: string | null;
}

/** So many iterations of a series are listed. */
const MOST_LISTED = 5000;

/** The images of a metric, of all iterations. */
export async function imagesOf(task: string, metric: string, signal: AbortSignal): Promise<ImageRow[]> {
  const path = `/data/tasks/${encodeURIComponent(task)}/images.json`;
  const rows = await data<ImageRow[]>(path, { metric, latest: MOST_LISTED }, signal);
  return rows.filter((row) => row.metric === metric); // a name with `*` matches other metrics, too
}

/** A number that grows when a run gets samples of a type; with `metric`, only when that metric does. */
export function useSamples(task: string, type: SampleType, metric?: string): number {
  const [version, setVersion] = useState(0);
  useEffect(
    () =>
      follow({ tasks: [task] }, (change) => {
        const any = change.event === "reset" || (change.event === "samples" && change.series === null);
        const ours =
          change.event === "samples" &&
          change.series?.some(([name, , , , kind]) => kind === type && (metric === undefined || name === metric));
        if (any || ours) setVersion((before) => before + 1);
      }),
    [task, type, metric],
  );
  return version;
}
