/** Asks for the plots and images of many runs, those of one iteration side by side. */

import { useEffect, useState } from "preact/hooks";

import { api } from "../../api/client";
import type { ReportedMetric } from "../../api/endpoints";
import { follow } from "../../api/live";
import { useSame } from "../../hooks/same";
import { nearest, seriesOf } from "../../samples/images";
import { imagesOf, newestPlots, plotsAt, plotsBeside, type SampleType } from "../../samples/samples";

/** What a run has of a series: at an iteration, or else the last before it. */
export interface Sample {
  readonly iter: number;
  /** A plot as it was reported, or the address of an image. */
  readonly content: string;
}

/** Of one metric: for each variant what each run has, and which iterations there are. */
export interface SideBySide {
  readonly variants: readonly { readonly variant: string; readonly samples: readonly (Sample | null)[] }[];
  /** Ascending. Of plots, those that are known so far. */
  readonly iterations: readonly number[];
}

/** The metrics that any of the runs has plots or images of, by name. */
export async function metricsOfAll(
  tasks: readonly string[],
  type: SampleType,
  signal: AbortSignal,
): Promise<ReportedMetric[]> {
  const { metrics } = await api("events.get_multi_task_metrics", { tasks, event_type: type }, signal);
  return metrics.toSorted((one, other) => one.metric.localeCompare(other.metric, "en", { numeric: true }));
}

export async function plotsOfAll(
  tasks: readonly string[],
  { metric, variants }: ReportedMetric,
  at: number | null,
  signal: AbortSignal,
): Promise<SideBySide> {
  const answers = await Promise.all(
    tasks.map(async (task) => {
      const found = await plotsAt(task, metric, at, signal);
      if (at !== null) return found;
      const missing = variants.filter((variant) => !found.plots.some((plot) => plot.variant === variant));
      if (!missing.length || !found.plots.length) return found;
      return { ...found, plots: [...found.plots, ...(await newestPlots(task, metric, missing, signal))] };
    }),
  );
  const ends = answers
    .filter(({ plots }) => plots.length)
    .flatMap(({ least, greatest, plots }) => [least, greatest, ...plots.map(({ iter }) => iter)]);
  const textOf = (plot: unknown): string => (typeof plot === "string" ? plot : JSON.stringify(plot ?? null));
  return {
    variants: variants.map((variant) => ({
      variant,
      samples: answers.map(({ plots }) => {
        const plot = plots.find((one) => one.variant === variant);
        return plot ? { iter: plot.iter, content: textOf(plot.plot_str) } : null;
      }),
    })),
    iterations: ascending(ends),
  };
}

export async function imagesOfAll(
  tasks: readonly string[],
  { metric, variants }: ReportedMetric,
  at: number | null,
  signal: AbortSignal,
): Promise<SideBySide> {
  const answers = await Promise.all(
    tasks.map(async (task) => seriesOf(await imagesOf(task, metric, signal), variants)),
  );
  return {
    variants: variants.map((variant) => ({
      variant,
      samples: answers.map((series) => {
        const images = series.find((one) => one.variant === variant)?.images ?? [];
        const iter = nearest(
          images.map((image) => image.iter),
          at,
        );
        const image = images.find((one) => one.iter === iter);
        return image ? { iter: image.iter, content: image.url } : null;
      }),
    })),
    iterations: ascending(answers.flat().flatMap(({ images }) => images.map(({ iter }) => iter))),
  };
}

/** Metrics whose plots are looked for: more would take too long for a step of a slider. */
const MOST_METRICS = 3;

/** Iterations before (-1) or after (1) `at` that have plots: the next of each run, ascending. */
export async function iterationsBeside(
  tasks: readonly string[],
  metrics: readonly ReportedMetric[],
  at: number,
  by: -1 | 1,
): Promise<number[]> {
  const { signal } = new AbortController();
  const next = async (task: string, metric: string): Promise<number[]> => {
    const found = await plotsAt(task, metric, at, signal);
    const here = found.plots[0]?.iter;
    if (here === undefined) return [];
    const beside = await plotsBeside(task, found, by);
    return [here, ...(beside?.plots.slice(0, 1).map(({ iter }) => iter) ?? [])];
  };
  const pairs = metrics.slice(0, MOST_METRICS).flatMap(({ metric }) => tasks.map((task) => next(task, metric)));
  return ascending((await Promise.all(pairs)).flat());
}

function ascending(numbers: readonly number[]): number[] {
  return [...new Set(numbers)].toSorted((one, other) => one - other);
}

/** A number that grows when any of the runs gets plots or images, at most every other second. */
export function useNewSamples(tasks: readonly string[], type: SampleType): number {
  const [version, setVersion] = useState(0);
  const followed = useSame(tasks);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const end = follow({ tasks: followed }, (change) => {
      const ours = change.event === "samples" && (change.series?.some(([, , , , kind]) => kind === type) ?? true);
      if (!ours && change.event !== "reset") return;
      timer ??= setTimeout(() => {
        timer = undefined;
        setVersion((before) => before + 1);
      }, 2000);
    });
    return () => {
      end();
      clearTimeout(timer);
    };
  }, [followed, type]);
  return version;
}
