/** An HTML report of a run, in a frame of its own without an origin: see `paper.ts` for what its scripts may do. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { blobOf } from "../api/files";
import { useAsked } from "../hooks/asked";
import { Empty, Failed, Waiting } from "../ui/Notice";
import css from "./Paper.module.css";

/** Larger reports would stop the page while they are sent to their frame. */
const MOST_BYTES = 50 * 2 ** 20;
/** A report that sends the page more messages in a second keeps it from answering to the mouse. */
const MOST_MESSAGES = 1000;

interface Props {
  readonly url: string;
  readonly name: string;
  /** Escape was pressed in the report, or its scripts say so. */
  readonly onEscape: () => void;
}

export function Paper({ url, name, onEscape }: Props): JSX.Element {
  const asked = useAsked(url, (signal) => textOf(url, signal), { fresh: true });
  if (asked.error) return <Failed error={asked.error} again={asked.again} />;
  if (asked.value === null) return <Waiting />;
  return <Sheet key={url} text={asked.value} {...{ name, onEscape }} />;
}

function Sheet({ text, name, onEscape }: Omit<Props, "url"> & { readonly text: string }): JSX.Element {
  const sent = useRef(false);
  const frame = useRef<HTMLIFrameElement>(null);
  useEffect(() => {
    function heard({ source, data }: MessageEvent<unknown>): void {
      if (source === frame.current?.contentWindow && data === "escape") onEscape();
    }
    addEventListener("message", heard);
    return () => removeEventListener("message", heard);
  }, [onEscape]);
  const noisy = useNoise();
  if (noisy) {
    return (
      <Empty title="This report was closed">
        <p>It sent so many messages that the page could no longer answer. Download it to look at it elsewhere.</p>
      </Empty>
    );
  }
  return (
    <div class={css["sheet"]}>
      <p class={css["note"]}>A run made this page. Type no password into it.</p>
      <iframe
        ref={frame}
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
    </div>
  );
}

/** Whether too many messages come. Nothing keeps a frame from sending them but its end. */
function useNoise(): boolean {
  const [noisy, setNoisy] = useState(false);
  useEffect(() => {
    let since = 0;
    let heard = 0;
    function count({ timeStamp }: MessageEvent): void {
      if (timeStamp - since > 1000) [since, heard] = [timeStamp, 0];
      if (++heard > MOST_MESSAGES) setNoisy(true);
    }
    addEventListener("message", count);
    return () => removeEventListener("message", count);
  }, []);
  return noisy;
}

async function textOf(url: string, signal: AbortSignal): Promise<string> {
  const content = await blobOf(url, signal);
  if (content.size > MOST_BYTES) throw new Error("this report is too large to be shown: download it");
  return content.text();
}
