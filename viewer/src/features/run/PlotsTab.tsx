/** The tab "Plots" of a run: a section for each metric, with the plots of its variants at one iteration. */

import type { JSX } from "preact";
import { useRef } from "preact/hooks";

import type { Plot, ReportedMetric } from "../../api/endpoints";
import { Board } from "../../frame/Board";
import { useAsked } from "../../hooks/asked";
import { useSeen } from "../../hooks/near";
import { useOnce } from "../../hooks/once";
import { IterationSlider } from "../../samples/IterationSlider";
import { PlotCard } from "../../samples/PlotCard";
import { metricsOf, newestPlots, type PlotsAt, plotsAt, plotsBeside, useSamples } from "../../samples/samples";
import { adjust, place, query } from "../../state/address";
import { attempt } from "../../state/toasts";
import { Empty, Failed, Waiting } from "../../ui/Notice";
import { choose, chosenIn, iterationOf } from "./chosen";
import { SampleBar } from "./SampleBar";
import css from "./Samples.module.css";
import type { TabProps } from "./task";

export function PlotsTab({ task }: TabProps): JSX.Element {
  const version = useSamples(task.id, "plot");
  const asked = useAsked(task.id, (signal) => metricsOf(task.id, "plot", signal), { version });
  if (asked.error && !asked.value) return <Failed error={asked.error} again={asked.again} />;
  if (!asked.value) return <Waiting what="Looking for plots" />;
  if (!asked.value.length) {
    return (
      <Empty title="This run has reported no plots">
        <p>Tables, matrices, histograms and figures of matplotlib and Plotly show here as soon as they are reported.</p>
      </Empty>
    );
  }
  const shown = named(asked.value, query.value.get("q") ?? "");
  return (
    <>
      <SampleBar what="plots" all={asked.value.length} shown={shown.length} />
      <Board>
        <div class={css["sections"]}>
          {shown.map((metric) => (
            <Section key={metric.metric} task={task.id} metric={metric} />
          ))}
        </div>
      </Board>
    </>
  );
}

/** The metrics whose name, or a variant's, has the text in it. */
export function named(metrics: readonly ReportedMetric[], text: string): ReportedMetric[] {
  const wanted = text.toLowerCase();
  return metrics.flatMap(({ metric, variants }) => {
    if (metric.toLowerCase().includes(wanted)) return [{ metric, variants }];
    const found = variants.filter((variant) => `${metric} / ${variant}`.toLowerCase().includes(wanted));
    return found.length ? [{ metric, variants: found }] : [];
  });
}

function Section({ task, metric: { metric, variants } }: { task: string; metric: ReportedMetric }): JSX.Element {
  const element = useRef<HTMLElement>(null);
  const seen = useSeen(element);
  const version = useSamples(task, "plot", metric);
  const chosen = chosenIn(query.value);
  const at = iterationOf(chosen, metric);
  const walked = useRef<PlotsAt | null>(null);
  const key = seen ? `${task} ${metric} ${at ?? "newest"}` : null;
  const ask = (signal: AbortSignal): Promise<PlotsAt> => {
    const known = walked.current;
    return known?.plots[0]?.iter === at && at !== null ? Promise.resolve(known) : plotsAt(task, metric, at, signal);
  };
  const asked = useAsked(key, ask, { version: at === null ? version : 0 });
  const found = asked.value;
  const [, once] = useOnce();
  const latest = useRef(at);
  latest.current = at;
  async function step(by: -1 | 1): Promise<void> {
    if (!found) return;
    const from = place.value;
    const beside = await plotsBeside(task, found, by);
    const next = beside?.plots[0]?.iter;
    if (next === undefined || place.value !== from || latest.current !== at) return; // the user has gone on meanwhile
    walked.current = beside;
    adjust(choose(chosenIn(query.value), metric, next));
  }
  const shown = found?.plots.filter(({ variant }) => variants.includes(variant)) ?? [];
  const missing = found ? variants.filter((variant) => !shown.some((plot) => plot.variant === variant)) : [];
  const iter = found?.plots[0]?.iter;
  return (
    <section ref={element} aria-label={metric} class={css["section"]} data-wide={variants.length > 1}>
      <header class={css["head"]}>
        <h2>{metric || "(no name)"}</h2>
        {found && iter !== undefined && found.least < found.greatest && (
          <IterationSlider
            name={metric}
            least={found.least}
            greatest={found.greatest}
            at={iter}
            newest={at === null}
            onChoose={(iteration) => adjust(choose(chosen, metric, iteration))}
            onStep={(by) => void once(() => attempt(() => step(by)))}
          />
        )}
      </header>
      {asked.error && <Failed error={asked.error} again={asked.again} />}
      {!found && !asked.error && <Waiting />}
      {found && !found.plots.length && <Empty title="These plots are gone" />}
      <div class={css["plots"]}>
        {shown.map((plot, place) => (
          <Card key={`${plot.variant} ${place}`} plot={plot} />
        ))}
        {at === null && missing.length > 0 && <Older task={task} metric={metric} variants={missing} />}
      </div>
      {at !== null && missing.length > 0 && (
        <p class={css["missing"]}>No plot at this iteration: {missing.join(", ")}</p>
      )}
    </section>
  );
}

/** Variants that have no plot at the metric's newest iteration: their own newest ones. */
function Older({ task, metric, variants }: { task: string; metric: string; variants: readonly string[] }): JSX.Element {
  const asked = useAsked(JSON.stringify([task, metric, variants]), (signal) =>
    newestPlots(task, metric, variants, signal),
  );
  if (asked.error) return <Failed error={asked.error} again={asked.again} />;
  return (
    <>
      {asked.value?.map((plot, place) => (
        <Card key={`${plot.variant} ${place}`} plot={plot} />
      ))}
    </>
  );
}

function Card({ plot: { metric, variant, iter, plot_str } }: { plot: Plot }): JSX.Element {
  const text = typeof plot_str === "string" ? plot_str : JSON.stringify(plot_str ?? null);
  return <PlotCard title={variant || metric} name={`${metric} / ${variant}`} iter={iter} text={text} />;
}
