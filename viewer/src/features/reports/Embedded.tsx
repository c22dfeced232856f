/** What a report embeds: plots, curves, images and single values of runs, as they are now. */

import type { ComponentChildren, JSX } from "preact";
import { useMemo, useState } from "preact/hooks";

import { api, data } from "../../api/client";
import { Card } from "../../chart/Card";
import { pageOf } from "../../chart/page";
import { ofRuns } from "../../chart/source";
import { type View, viewOf } from "../../chart/view";
import type { Table } from "../../frame/plot";
import { useAsked } from "../../hooks/asked";
import { counted, valueText } from "../../lib/times";
import { ALL } from "../../routes";
import { Picture } from "../../samples/Picture";
import { PlotCard } from "../../samples/PlotCard";
import type { ImageRow } from "../../samples/samples";
import { ValueTable } from "../../samples/ValueTable";
import { Link } from "../../ui/Link";
import { Failed, Waiting } from "../../ui/Notice";
import css from "./Embedded.module.css";
import { type Widget, widgetOf } from "./widget";

export function Embedded({ src, height }: { src: string; height: number | null }): JSX.Element {
  const widget = useMemo(() => widgetOf(src), [src]);
  if (!widget?.tasks.length || widget.models) {
    return (
      <Note>This part of the report cannot be shown here: it is no plot, curve, image or value of named runs.</Note>
    );
  }
  const Content = CONTENT[widget.type];
  return <Content widget={widget} height={Math.min(Math.max(height ?? 300, 120), 800)} />;
}

interface Props {
  readonly widget: Widget;
  readonly height: number;
}

const CONTENT: Readonly<Record<Widget["type"], (props: Props) => JSX.Element>> = {
  plot: Plots,
  scalar: Curves,
  sample: Samples,
  single: Values,
};

function Plots({ widget }: Props): JSX.Element {
  const body = { tasks: widget.tasks, iters: 1, no_scroll: true, metrics: seriesOf(widget) };
  const asked = useAsked(JSON.stringify(body), async (signal) => {
    const { plots } = await api("events.get_multi_task_plots", body, signal);
    const of = <T,>(part: Record<string, T>): T[] => Object.values(part);
    return of(plots)
      .flatMap(of)
      .flatMap(of)
      .flatMap(of)
      .flatMap(({ name, plots: events }) => events.map((event) => ({ name, event })));
  });
  if (asked.error) return <Failed error={asked.error} again={asked.again} />;
  if (!asked.value) return <Waiting />;
  if (!asked.value.length) return <Gone widget={widget} />;
  return (
    <div class={css["many"]}>
      {asked.value.map(({ name, event: { metric, variant, iter, plot_str } }, at) => (
        <PlotCard
          key={at}
          title={`${metric} / ${variant}`}
          name={`${metric} / ${variant} of ${name}`}
          iter={iter}
          text={plot_str ?? ""}
          note={name}
        />
      ))}
    </div>
  );
}

function Curves({ widget, height }: Props): JSX.Element {
  const { tasks, metrics, variants } = widget;
  const key = tasks.join();
  const asked = useAsked(key, (signal) =>
    api("tasks.get_all_ex", { id: tasks, only_fields: ["name"], search_hidden: true }, signal),
  );
  const [views, setViews] = useState<View>(() => viewOf(new URLSearchParams()));
  const page = useMemo(() => (asked.value ? pageOf(ofRuns(ALL, asked.value.tasks)) : null), [asked.value]);
  if (asked.error) return <Failed error={asked.error} again={asked.again} />;
  if (!page) return <Waiting />;
  return (
    <div class={css["many"]}>
      {metrics.map((metric) => (
        <Card
          key={metric}
          spec={{ id: metric, title: metric, metric, variants: variants.length ? variants : null }}
          view={views}
          page={page}
          height={height}
          onView={(change) => setViews((before) => ({ ...before, ...change }))}
        />
      ))}
    </div>
  );
}

function Samples({ widget }: Props): JSX.Element {
  const asked = useAsked(JSON.stringify(widget), async (signal) => {
    const of = (task: string): Promise<ImageRow[]> =>
      data(
        `/data/tasks/${encodeURIComponent(task)}/images.json`,
        { metric: widget.metrics, variant: widget.variants, latest: 1 },
        signal,
      );
    return (await Promise.all(widget.tasks.map(of))).flat();
  });
  if (asked.error) return <Failed error={asked.error} again={asked.again} />;
  if (!asked.value) return <Waiting />;
  const rows = asked.value.filter(({ url }) => url);
  if (!rows.length) return <Gone widget={widget} />;
  return (
    <div class={css["images"]}>
      {rows.map(({ metric, variant, iter, url }, at) => (
        <figure key={at}>
          <Picture url={url ?? ""} name={`${metric} / ${variant}`} />
          <figcaption>
            {metric} / {variant}, iteration {counted(iter)}
          </figcaption>
        </figure>
      ))}
    </div>
  );
}

function Values({ widget }: Props): JSX.Element {
  const body = { tasks: widget.tasks };
  const asked = useAsked(JSON.stringify(body), (signal) => api("events.get_task_single_value_metrics", body, signal));
  if (asked.error) return <Failed error={asked.error} again={asked.again} />;
  if (!asked.value) return <Waiting />;
  const wanted = (name: string): boolean => !widget.variants.length || widget.variants.includes(name);
  const rows = asked.value.tasks.flatMap(({ task_name: name, values }) =>
    values.filter(({ variant }) => wanted(variant)).map(({ variant, value }) => [name, variant, valueText(value)]),
  );
  if (!rows.length) return <Gone widget={widget} />;
  const table: Table = { heads: ["Run", "Name", "Value"], rows, numbers: [false, false, true] };
  return <ValueTable table={table} name="Single values" />;
}

function Gone({ widget }: { widget: Widget }): JSX.Element {
  const task = widget.tasks[0]!;
  return (
    <Note>
      There is nothing of {widget.metrics.join(", ") || "this"} any more.{" "}
      <Link to={{ page: "run", project: ALL, task, tab: "overview" }}>Show the run</Link>
    </Note>
  );
}

function Note({ children }: { children: ComponentChildren }): JSX.Element {
  return <p class={css["note"]}>{children}</p>;
}

function seriesOf({ metrics, variants }: Widget): { metric: string; variants: readonly string[] }[] {
  return metrics.map((metric) => ({ metric, variants }));
}
