/** One reported plot with its name: a table, pictures, a figure, or the text that it is. */

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";

import { save } from "../api/files";
import { Figure } from "../frame/Figure";
import { type Plot, plotOf } from "../frame/plot";
import { counted } from "../lib/times";
import { Lightbox } from "./Lightbox";
import { Picture } from "./Picture";
import css from "./PlotCard.module.css";
import { ValueTable } from "./ValueTable";

interface Props {
  readonly title: string;
  /** What screen readers call it, and files that are saved: metric and variant. */
  readonly name: string;
  /** The iteration that it is of. */
  readonly iter?: number;
  /** `plot_str` as it was reported. */
  readonly text: string;
  /** More to say beside the title, such as the run's name. */
  readonly note?: string;
}

/** Longer figures are drawn when someone asks for it: they take the browser many seconds. */
const LONG = 8 * 2 ** 20;

export function PlotCard({ title, name, iter, text, note }: Props): JSX.Element {
  const plot = useMemo(() => plotOf(text), [text]);
  const [picture, setPicture] = useState<(() => Promise<Blob>) | null>(null);
  return (
    <article class={css["card"]} aria-label={name}>
      <header class={css["head"]}>
        <h3 title={name}>{title}</h3>
        {iter !== undefined && <span class={css["iter"]}>iteration {counted(iter)}</span>}
        {note && <span class={css["iter"]}>{note}</span>}
        <span class={css["space"]} />
        {picture && (
          <button
            type="button"
            title="Save as a picture"
            onClick={() => void picture().then((png) => save(png, `${name}.png`))}
          >
            PNG
          </button>
        )}
        <button
          type="button"
          title="Save what was reported"
          onClick={() => save(new Blob([text], { type: "application/json" }), `${name}.json`)}
        >
          JSON
        </button>
      </header>
      <Content plot={plot} name={name} onPicture={(make) => setPicture(() => make)} />
    </article>
  );
}

interface ContentProps {
  plot: Plot;
  name: string;
  onPicture: (make: (() => Promise<Blob>) | null) => void;
}

function Content({ plot, name, onPicture }: ContentProps): JSX.Element {
  const [asked, setAsked] = useState(false);
  const [opened, setOpened] = useState<string | null>(null);
  switch (plot.kind) {
    case "table":
      return (
        <>
          {plot.tables.map((table, at) => (
            <ValueTable key={at} table={table} name={name} />
          ))}
        </>
      );
    case "pictures":
      return (
        <div class={css["pictures"]}>
          {plot.sources.map((source) => (
            <Picture key={source} url={source} name={name} onOpen={() => setOpened(source)} />
          ))}
          {opened !== null && <Lightbox url={opened} title={name} said="" onClose={() => setOpened(null)} />}
        </div>
      );
    case "figure":
      if (plot.text.length > LONG && !asked) {
        return (
          <div class={css["long"]}>
            <p>This figure has {Math.round(plot.text.length / 2 ** 20)} MB. Drawing it may take a while.</p>
            <button type="button" onClick={() => setAsked(true)}>
              Draw it
            </button>
          </div>
        );
      }
      return <Figure name={name} text={plot.text} height={plot.height} images={plot.images} onPicture={onPicture} />;
    case "text":
      return <pre class={css["text"]}>{plot.text.slice(0, 20_000) || "Nothing was reported."}</pre>;
  }
}
