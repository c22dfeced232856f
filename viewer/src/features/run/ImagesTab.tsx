/** The tab "Images" of a run: pictures, audio, video and other files that it reported, by metric and iteration. */

import type { JSX } from "preact";
import { useMemo, useRef } from "preact/hooks";

import type { ReportedMetric } from "../../api/endpoints";
import { kindOf } from "../../api/files";
import { useAsked } from "../../hooks/asked";
import { useSeen } from "../../hooks/near";
import { useSame } from "../../hooks/same";
import { counted } from "../../lib/times";
import { IterationSlider } from "../../samples/IterationSlider";
import { atIteration, iterationsOf, nearest, type Shown, seriesOf } from "../../samples/images";
import { Lightbox } from "../../samples/Lightbox";
import { Picture } from "../../samples/Picture";
import { imagesOf, metricsOf, useSamples } from "../../samples/samples";
import { adjust, query } from "../../state/address";
import { Empty, Failed, Waiting } from "../../ui/Notice";
import { choose, chosenIn, iterationOf } from "./chosen";
import { named } from "./PlotsTab";
import { SampleBar } from "./SampleBar";
import css from "./Samples.module.css";
import type { TabProps } from "./task";

export function ImagesTab({ task }: TabProps): JSX.Element {
  const version = useSamples(task.id, "training_debug_image");
  const asked = useAsked(task.id, (signal) => metricsOf(task.id, "training_debug_image", signal), { version });
  if (asked.error && !asked.value) return <Failed error={asked.error} again={asked.again} />;
  if (!asked.value) return <Waiting what="Looking for images" />;
  if (!asked.value.length) {
    return (
      <Empty title="This run has reported no images">
        <p>Debug images, audio, video and other media show here as soon as they are reported.</p>
      </Empty>
    );
  }
  const shown = named(asked.value, query.value.get("q") ?? "");
  const beside = query.value.get("show") === "beside";
  return (
    <>
      <SampleBar what="images" all={asked.value.length} shown={shown.length}>
        <label class={css["choice"]}>
          <input
            type="checkbox"
            checked={beside}
            onChange={(event) => adjust({ show: event.currentTarget.checked ? "beside" : null }, { push: true })}
          />{" "}
          Iterations side by side
        </label>
      </SampleBar>
      <div class={css["stack"]}>
        {shown.map((metric) => (
          <Section key={metric.metric} task={task.id} metric={metric} beside={beside} />
        ))}
      </div>
    </>
  );
}

/** So many iterations are shown side by side. */
const MOST_BESIDE = 50;

function Section({ task, metric, beside }: { task: string; metric: ReportedMetric; beside: boolean }): JSX.Element {
  const { metric: name } = metric;
  const variants = useSame(metric.variants);
  const element = useRef<HTMLElement>(null);
  const view = query.value.get("view") ?? "";
  const seen = useSeen(element) || view.startsWith(`${name}/`);
  const version = useSamples(task, "training_debug_image", name);
  const asked = useAsked(seen ? `${task} ${name}` : null, (signal) => imagesOf(task, name, signal), { version });
  const series = useMemo(() => seriesOf(asked.value ?? [], variants), [asked.value, variants]);
  const iterations = useMemo(() => iterationsOf(series), [series]);
  const chosen = chosenIn(query.value);
  const wanted = iterationOf(chosen, name);
  const at = nearest(iterations, wanted);
  function show(iteration: number | null): void {
    adjust(choose(chosen, name, iteration === null ? null : nearest(iterations, iteration)));
  }
  function step(by: -1 | 1): void {
    const next = iterations[iterations.indexOf(at ?? 0) + by];
    if (next !== undefined) show(next);
  }
  const open = (image: Shown): void => adjust({ view: nameOf(image) }, { push: true });
  return (
    <section ref={element} aria-label={name} class={css["section"]}>
      <header class={css["head"]}>
        <h2>{name || "(no name)"}</h2>
        {!beside && at !== null && iterations.length > 1 && (
          <IterationSlider
            name={name}
            least={iterations[0]!}
            greatest={iterations.at(-1)!}
            at={at}
            newest={wanted === null}
            onChoose={show}
            onStep={step}
          />
        )}
      </header>
      {asked.error && <Failed error={asked.error} again={asked.again} />}
      {!asked.value && !asked.error && <Waiting />}
      {beside ? (
        <div class={css["strips"]}>
          {series.map(({ variant, images }) => (
            <div key={variant}>
              <h3>{variant}</h3>
              <div class={css["strip"]} tabIndex={0} role="group" aria-label={`${name} / ${variant} by iteration`}>
                {images
                  .slice(-MOST_BESIDE)
                  .toReversed()
                  .map((image) => (
                    <Card key={image.iter} image={image} caption={counted(image.iter)} onOpen={open} />
                  ))}
              </div>
            </div>
          ))}
        </div>
      ) : (
        <div class={css["pictures"]}>
          {atIteration(series, wanted === null ? null : at).map((image) => (
            <Card key={image.variant} image={image} caption={image.variant || name} onOpen={open} />
          ))}
        </div>
      )}
      <Viewer series={series} view={view} />
    </section>
  );
}

function Card({
  image,
  caption,
  onOpen,
}: {
  image: Shown;
  caption: string;
  onOpen: (image: Shown) => void;
}): JSX.Element {
  const kind = kindOf(image.url);
  return (
    <figure class={css["card"]} aria-label={nameOf(image)}>
      <div class={css["shown"]} data-low={kind === "audio"}>
        <Picture
          url={image.url}
          name={nameOf(image)}
          {...((kind === "image" || kind === "html") && { onOpen: () => onOpen(image) })}
        />
      </div>
      <figcaption>
        <span title={nameOf(image)}>{caption}</span>
        <span>{caption === counted(image.iter) ? "" : `iteration ${counted(image.iter)}`}</span>
      </figcaption>
    </figure>
  );
}

/** The image that the address opens, if it is one of these. */
function Viewer({ series, view }: { series: ReturnType<typeof seriesOf>; view: string }): JSX.Element | null {
  if (!view) return null;
  const row = series.findIndex(({ images }) => images.some((image) => nameOf(image) === view));
  const place = series[row]?.images.findIndex((image) => nameOf(image) === view) ?? -1;
  const image = series[row]?.images[place];
  if (!image) return null;
  const go = (next: Shown | undefined): void => next && adjust({ view: nameOf(next) });
  /** The image of another variant at the same iteration, or else at the nearest one. */
  const ofVariant = (step: number): Shown | undefined => {
    const images = series[row + step]?.images;
    const at = nearest(images?.map(({ iter }) => iter) ?? [], image.iter);
    return images?.find(({ iter }) => iter === at);
  };
  const beside = {
    before: () => series[row]?.images[place - 1],
    after: () => series[row]?.images[place + 1],
    up: () => ofVariant(-1),
    down: () => ofVariant(1),
  };
  return (
    <Lightbox
      url={image.url}
      title={`${image.metric} / ${image.variant}`}
      said={`iteration ${counted(image.iter)}`}
      onMove={(to) => go(beside[to]())}
      onClose={() => adjust({ view: null }, { push: true })}
    />
  );
}

/** `samples/input@300`: also what the address calls it. */
function nameOf({ metric, variant, iter }: Shown): string {
  return `${metric}/${variant}@${iter}`;
}
