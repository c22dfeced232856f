/** An HTML report of a run, in a frame of its own without an origin: see `paper.ts` for what its scripts may do. */

import type { JSX } from "preact";
import { useRef } from "preact/hooks";

import { useAsked } from "../parts/asked";
import { blobOf } from "../parts/files";
import { Failed, Waiting } from "../parts/Notice";
import css from "./Paper.module.css";

/** Larger reports would stop the page while they are sent to their frame. */
const MOST_BYTES = 50 * 2 ** 20;

export function Paper({ url, name }: { url: string; name: string }): JSX.Element {
  const asked = useAsked(url, (signal) => textOf(url, signal), { fresh: true });
  const sent = useRef(false);
  if (asked.error) return <Failed error={asked.error} again={asked.again} />;
  if (asked.value === null) return <Waiting />;
  const text = asked.value;
  return (
    <iframe
      key={url}
      title={name}
      class={css["paper"]}
      sandbox="allow-scripts"
      referrerpolicy="no-referrer"
      src="/paper.html"
      onLoad={(event) => {
        if (sent.current) return; // the report itself has loaded
        sent.current = true;
        event.currentTarget.contentWindow?.postMessage(text, "*");
      }}
    />
  );
}

async function textOf(url: string, signal: AbortSignal): Promise<string> {
  const content = await blobOf(url, signal);
  if (content.size > MOST_BYTES) throw new Error("this report is too large to be shown: download it");
  return content.text();
}
