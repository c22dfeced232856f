/** A link that downloads a stored file, or words that say where it lies. */

import type { JSX } from "preact";

import { file } from "../api/client";
import { type FilePlace, filePlace } from "../lib/downloads";
import { Copy } from "./Copy";

interface Props {
  uri: string | null | undefined;
  /** What the link is called to a screen reader: "Download best.pt". */
  name: string;
}

export function FileLink({ uri, name }: Props): JSX.Element | null {
  const place = filePlace(uri, location.hostname);
  switch (place.kind) {
    case "none":
      return null;
    case "here":
      return (
        <a href={place.address} download aria-label={`Download ${name}`}>
          Download
        </a>
      );
    case "web":
      return (
        <a
          href={place.url}
          target="_blank"
          rel="noopener noreferrer"
          title={`It lies on ${place.host}`}
          aria-label={`Open ${name} on ${place.host}`}
          onClick={(event) => {
            event.preventDefault();
            void openFrom(place);
          }}
        >
          Open
        </a>
      );
    case "away":
      return (
        <span title={place.why}>
          <code>{uri}</code> <Copy text={uri ?? ""} what="address" />
        </span>
      );
  }
}

/** Open a file by this server if that has it, else where it lies. */
async function openFrom(place: Extract<FilePlace, { kind: "web" }>): Promise<void> {
  const enough = new AbortController();
  const ours = await file(place.address, enough.signal).then(
    () => true,
    () => false,
  );
  enough.abort();
  open(ours ? place.address : place.url, "_blank", "noopener,noreferrer");
}
