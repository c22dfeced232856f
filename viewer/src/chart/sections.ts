/** Which charts a page has, in which order, and under which headings. Pure. */

import type { ChartSpec } from "./source";

export interface Section {
  readonly title: string;
  readonly charts: readonly ChartSpec[];
}

/** The variants of a metric that one chart shows at first. */
export const MOST_LINES = 20;

const collator = new Intl.Collator("en", { numeric: true });

/**
 * A chart for each metric that a search finds, or of which it finds variants. "loss" finds the metric "loss", so its chart
 * has all variants. "loss/train" finds one variant of it, so its chart has that one.
 */
export function chartsOf(
  metrics: Readonly<Record<string, readonly string[]>>,
  found: (name: string) => boolean,
  more: ReadonlyMap<string, number> = new Map(),
): ChartSpec[] {
  const charts: ChartSpec[] = [];
  for (const metric of Object.keys(metrics).sort(collator.compare)) {
    const all = metrics[metric]!;
    const wanted = found(metric) ? all : all.filter((variant) => found(`${metric}/${variant}`));
    if (!wanted.length) continue;
    const shown = [...wanted].sort(collator.compare).slice(0, more.get(metric) ?? MOST_LINES);
    charts.push({
      id: metric,
      title: metric,
      metric,
      variants: shown.length === all.length ? null : shown,
      ...(shown.length < wanted.length && { of: wanted.length }),
    });
  }
  return charts;
}

/**
 * Charts of what machines report: a section for each metric, ":monitor:gpu" being "gpu". The same of several GPUs is one
 * chart: "gpu_0_utilization" and "gpu_1_utilization".
 */
export function systemCharts(
  metrics: Readonly<Record<string, readonly string[]>>,
  found: (name: string) => boolean,
): ChartSpec[] {
  const charts = new Map<string, ChartSpec & { variants: string[] }>();
  for (const metric of Object.keys(metrics).sort(collator.compare)) {
    for (const variant of [...metrics[metric]!].sort(collator.compare)) {
      const what = variant.replace(/^gpu_\d+_/, "");
      const title = `${metric.replace(/^:monitor:/, "")}/${what}`;
      const id = `${metric}/${what}`;
      if (!found(`${title}/${variant}`)) continue;
      const chart = charts.get(id);
      if (chart) chart.variants.push(variant);
      else charts.set(id, { id, title, metric, variants: [variant] });
    }
  }
  return [...charts.values()];
}

/** The pinned charts, in the order of the pins, then a section for each prefix: "train/loss" is in "train". Those without come last. */
export function sectionsOf(charts: readonly ChartSpec[], pins: readonly string[]): Section[] {
  const byId = new Map(charts.map((chart) => [chart.id, chart]));
  const pinned = pins.flatMap((id) => byId.get(id) ?? []);
  const sections = new Map<string, ChartSpec[]>();
  for (const chart of charts) {
    if (pins.includes(chart.id)) continue;
    const at = chart.title.indexOf("/");
    const title = at > 0 ? chart.title.slice(0, at) : "";
    const section = sections.get(title);
    if (section) section.push(chart);
    else sections.set(title, [chart]);
  }
  const rest = [...sections].map(([title, some]) => ({ title, charts: some }));
  rest.sort((one, other) => Number(!one.title) - Number(!other.title) || collator.compare(one.title, other.title));
  return pinned.length ? [{ title: "Pinned", charts: pinned }, ...rest] : rest;
}
