/** One figure of Plotly on a board. It is drawn when it comes near the screen, and given up when it leaves it. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { blobOf } from "../api/files";
import { useSame } from "../hooks/same";
import { useHoles } from "./Board";
import css from "./Figure.module.css";
import type { Progress } from "./host";

interface Props {
  /** What screen readers call it: metric and variant. */
  readonly name: string;
  /** The figure as JSON. */
  readonly text: string;
  /** Pixels. */
  readonly height: number;
  /** Addresses of pictures in the figure. */
  readonly images?: readonly string[];
  /** Called with a function that makes a PNG of the figure while it is drawn, and with null when it is not. */
  readonly onPicture?: (make: (() => Promise<Blob>) | null) => void;
}

/** How far from the screen figures are drawn ahead. */
const AHEAD = "500px";
/** Pixels: a few words need less room than a figure. */
const FAILED_HEIGHT = 120;
const NONE: readonly string[] = [];

export function Figure({ name, text, height, images = NONE, onPicture }: Props): JSX.Element {
  const holes = useHoles();
  const element = useRef<HTMLDivElement>(null);
  const [near, setNear] = useState(false);
  const [progress, setProgress] = useState<Progress>({ state: "waiting" });
  const picture = useRef(onPicture);
  picture.current = onPicture;
  useEffect(() => {
    const seen = new IntersectionObserver((entries) => setNear(entries.at(-1)!.isIntersecting), { rootMargin: AHEAD });
    seen.observe(element.current!);
    return () => seen.disconnect();
  }, []);
  const pictures = useSame(images);
  useEffect(() => {
    if (!near || !holes) return;
    const stop = new AbortController();
    let id: number | null = null;
    void blobs(pictures, stop.signal).then((found) => {
      if (stop.signal.aborted) return;
      const drawn = holes.draw(element.current!, text, found, (next) => {
        setProgress(next);
        picture.current?.(next.state === "drawn" ? () => holes.frame!.png(drawn) : null);
      });
      id = drawn;
    });
    return () => {
      stop.abort();
      picture.current?.(null);
      setProgress({ state: "waiting" });
      if (id !== null) holes.remove(id);
    };
  }, [near, text, pictures, holes]);
  return (
    <div
      ref={element}
      role="figure"
      aria-label={name}
      aria-busy={progress.state === "waiting"}
      data-hole
      data-state={progress.state}
      class={css["figure"]}
      style={{ height: `${progress.state === "failed" ? FAILED_HEIGHT : height}px` }}
    >
      {progress.state === "waiting" && near && <p class={css["waiting"]}>Drawing…</p>}
      {progress.state === "failed" && (
        <p class={css["failed"]} role="alert">
          This figure cannot be drawn: {progress.words || "Plotly does not take it"}.
        </p>
      )}
    </div>
  );
}

/** The pictures that can be had, by their addresses. The figure is drawn without the others. */
async function blobs(addresses: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, Blob>> {
  const found = await Promise.allSettled(addresses.map((address) => blobOf(address, signal)));
  return new Map(
    found.flatMap((one, at) => (one.status === "fulfilled" ? [[addresses[at]!, one.value] as const] : [])),
  );
}
