/** Plots and images of the runs side by side, at the same iteration: one slider moves all of them. */

import type { JSX } from "preact";
import { useCallback, useRef, useState } from "preact/hooks";

import type { ReportedMetric } from "../../api/endpoints";
import { kindOf } from "../../api/files";
import { Board } from "../../frame/Board";
import { useAsked } from "../../hooks/asked";
import { useSeen } from "../../hooks/near";
import { counted } from "../../lib/times";
import { IterationSlider } from "../../samples/IterationSlider";
import { Lightbox } from "../../samples/Lightbox";
import { Picture } from "../../samples/Picture";
import { PlotCard } from "../../samples/PlotCard";
import type { SampleType } from "../../samples/samples";
import { Empty, Failed, Waiting } from "../../ui/Notice";
import { type CompareProps, show } from "./props";
import type { Run } from "./runs";
import css from "./SamplesTab.module.css";
import {
  imagesOfAll,
  iterationsBeside,
  metricsOfAll,
  plotsOfAll,
  type Sample,
  type SideBySide,
  useNewSamples,
} from "./samples";

/** So many runs are shown side by side: each plot takes the browser some time. */
const MOST_RUNS = 12;

export function PlotsTab(props: CompareProps): JSX.Element {
  return <SamplesTab {...props} type="plot" what="plots" />;
}

export function ImagesTab(props: CompareProps): JSX.Element {
  return <SamplesTab {...props} type="training_debug_image" what="images" />;
}

interface Props extends CompareProps {
  type: SampleType;
  what: "plots" | "images";
}

function SamplesTab(props: Props): JSX.Element {
  const { runs, shown, view, type, what } = props;
  const some = shown.slice(0, MOST_RUNS).map((row) => runs[row]!);
  const ids = some.map(({ id }) => id);
  const version = useNewSamples(ids, type);
  const asked = useAsked(ids.join(), (signal) => metricsOfAll(ids, type, signal), { version });
  const [known, setKnown] = useState<ReadonlySet<number>>(new Set());
  const learn = useCallback((iterations: readonly number[]) => {
    setKnown((before) => (iterations.every((one) => before.has(one)) ? before : new Set([...before, ...iterations])));
  }, []);
  if (!some.length) return <Empty title="No run is shown" />;
  if (asked.error && !asked.value) return <Failed error={asked.error} again={asked.again} />;
  if (!asked.value) return <Waiting what={`Looking for ${what}`} />;
  if (!asked.value.length) return <Empty title={`These runs have reported no ${what}`} />;
  const metrics = asked.value;
  const iterations = [...known].toSorted((one, other) => one - other);
  const [least, greatest] = [iterations[0], iterations.at(-1)];
  const at = view.iter ?? greatest ?? 0;
  async function step(by: -1 | 1): Promise<void> {
    const found = what === "plots" ? await iterationsBeside(ids, metrics, at, by) : iterations;
    const next = by > 0 ? found.find((one) => one > at) : found.findLast((one) => one < at);
    if (next !== undefined) show({ iter: next });
  }
  return (
    <>
      <div class={css["bar"]}>
        {least !== undefined && greatest !== undefined && least < greatest && (
          <IterationSlider
            name="all runs"
            least={least}
            greatest={greatest}
            at={Math.min(greatest, Math.max(least, at))}
            newest={view.iter === null}
            onChoose={(iter) => show({ iter })}
            onStep={(by) => void step(by)}
          />
        )}
        {some.length < shown.length && (
          <span role="note">
            {counted(some.length)} of {counted(shown.length)} runs. Hide some, or choose others by a brush, to see more.
          </span>
        )}
      </div>
      <Board>
        {metrics.map((metric) => (
          <Section
            key={metric.metric}
            {...props}
            some={some}
            metric={metric}
            version={version}
            learn={learn}
            step={(by) => void step(by)}
          />
        ))}
      </Board>
    </>
  );
}

interface SectionProps extends Props {
  some: readonly Run[];
  metric: ReportedMetric;
  version: number;
  learn: (iterations: readonly number[]) => void;
  step: (by: -1 | 1) => void;
}

function Section({ some, metric, version, view, what, colours, learn, step }: SectionProps): JSX.Element {
  const element = useRef<HTMLElement>(null);
  const seen = useSeen(element);
  const ids = some.map(({ id }) => id);
  const key = seen ? JSON.stringify([ids, metric, view.iter]) : null;
  const ask = async (signal: AbortSignal): Promise<SideBySide & { of: readonly string[] }> => {
    const found = await (what === "plots" ? plotsOfAll : imagesOfAll)(ids, metric, view.iter, signal);
    learn(found.iterations);
    return { ...found, of: ids };
  };
  const asked = useAsked(key, ask, { version });
  // The last answer stays while the next one is on its way: it may be about other runs.
  const sampleOf = (samples: readonly (Sample | null)[], id: string): Sample | null =>
    samples[asked.value!.of.indexOf(id)] ?? null;
  return (
    <section ref={element} class={css["section"]} aria-label={metric.metric}>
      <h2>{metric.metric || "(no name)"}</h2>
      {asked.error && <Failed error={asked.error} again={asked.again} />}
      {!asked.value && !asked.error && <Waiting />}
      {asked.value?.variants.map(({ variant, samples }) => (
        <div key={variant}>
          {variant && <h3 class={css["variant"]}>{variant}</h3>}
          <div class={css["row"]} data-kind={what}>
            {some.map((run) => {
              const sample = sampleOf(samples, run.id);
              const name = `${metric.metric} / ${variant} of ${run.name}`;
              return (
                sample && (
                  <div key={run.id} class={css["cell"]} style={`--colour: ${colours.get(run.id) ?? ""}`}>
                    {what === "plots" ? (
                      <PlotCard title={run.name} name={name} iter={sample.iter} text={sample.content} />
                    ) : (
                      <Image run={run} name={name} sample={sample} id={idOf(run, metric.metric, variant)} />
                    )}
                  </div>
                )
              );
            })}
          </div>
          <Without names={some.filter((run) => !sampleOf(samples, run.id)).map(({ name }) => name)} />
          {what === "images" && view.open !== null && (
            <Opened
              open={view.open}
              shown={some.map((run) => ({
                id: idOf(run, metric.metric, variant),
                title: `${metric.metric} / ${variant} of ${run.name}`,
                sample: sampleOf(samples, run.id),
              }))}
              step={step}
            />
          )}
        </div>
      ))}
    </section>
  );
}

function Without({ names }: { names: readonly string[] }): JSX.Element | null {
  return names.length ? <p class={css["without"]}>Without: {names.join(", ")}</p> : null;
}

function Image({ run, name, sample, id }: { run: Run; name: string; sample: Sample; id: string }): JSX.Element {
  const kind = kindOf(sample.content);
  return (
    <figure class={css["image"]} aria-label={name}>
      <div>
        <Picture
          url={sample.content}
          name={`${name}, iteration ${sample.iter}`}
          {...((kind === "image" || kind === "html") && { onOpen: () => show({ open: id }, { push: true }) })}
        />
      </div>
      <figcaption>
        <span title={run.name}>{run.name}</span>
        <span>{counted(sample.iter)}</span>
      </figcaption>
    </figure>
  );
}

interface OpenedProps {
  open: string;
  shown: readonly { id: string; title: string; sample: Sample | null }[];
  step: (by: -1 | 1) => void;
}

/** An image over the whole window: arrows lead to other iterations, and to the same of other runs. */
function Opened({ open, shown, step }: OpenedProps): JSX.Element | null {
  const some = shown.filter(({ sample }) => sample);
  const at = some.findIndex(({ id }) => id === open);
  const image = some[at];
  if (!image?.sample) return null;
  const go = (by: number): void => {
    const next = some[at + by];
    if (next) show({ open: next.id });
  };
  return (
    <Lightbox
      url={image.sample.content}
      title={image.title}
      said={`iteration ${counted(image.sample.iter)}`}
      onMove={(to) => {
        if (to === "before" || to === "after") step(to === "before" ? -1 : 1);
        else go(to === "up" ? -1 : 1);
      }}
      onClose={() => show({ open: null }, { push: true })}
    />
  );
}

function idOf(run: Run, metric: string, variant: string): string {
  return `${run.id}/${metric}/${variant}`;
}
