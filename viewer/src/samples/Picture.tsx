/** A file that a run reported: a picture, audio, video, an HTML report, or a download. What cannot be shown says why. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import { kindOf, linkOf, nameOf, placeOfFile, whyNot } from "../api/files";
import { whenBack } from "../api/live";
import css from "./Picture.module.css";

interface Props {
  /** Where the run says that the file lies. */
  readonly url: string;
  /** What screen readers call it: metric, variant and iteration. */
  readonly name: string;
  /** Makes it a button: a picture or an HTML report is then seen larger. */
  readonly onOpen?: () => void;
}

/** Smaller pictures, in pixels, are shown with sharp pixels. */
const SMALL = 128;

export function Picture({ url, name, onOpen }: Props): JSX.Element {
  const [broken, setBroken] = useState<string | null>(null);
  const [small, setSmall] = useState(false);
  useEffect(() => whenBack(() => setBroken(null)), []);
  const place = placeOfFile(url);
  if (!place || broken === url) return <NotShown url={url} name={name} />;
  const fail = (): void => setBroken(url);
  switch (kindOf(url)) {
    case "image": {
      const image = (
        <img
          src={place}
          alt={name}
          loading="lazy"
          decoding="async"
          class={css["image"]}
          data-small={small}
          onLoad={(event) => setSmall(event.currentTarget.naturalWidth <= SMALL)}
          onError={fail}
        />
      );
      return onOpen ? (
        <button type="button" class={css["open"]} onClick={onOpen}>
          {image}
        </button>
      ) : (
        image
      );
    }
    case "audio":
      return <audio controls preload="metadata" src={place} aria-label={name} class={css["audio"]} onError={fail} />;
    case "video":
      return <video controls preload="metadata" src={place} aria-label={name} class={css["video"]} onError={fail} />;
    case "html":
      return (
        <div class={css["other"]}>
          <p>{nameOf(url)}</p>
          {onOpen && (
            <button type="button" onClick={onOpen}>
              Show the report
            </button>
          )}
          <a href={place} download={nameOf(url)}>
            Download
          </a>
        </div>
      );
    default:
      return (
        <div class={css["other"]}>
          <p>{nameOf(url)}</p>
          <a href={place} download={nameOf(url)}>
            Download
          </a>
        </div>
      );
  }
}

function NotShown({ url, name }: { url: string; name: string }): JSX.Element {
  const link = linkOf(url);
  return (
    <div class={css["other"]} role="note" aria-label={name}>
      <p>{whyNot(url)}</p>
      {link ? (
        <a href={link} target="_blank" rel="noopener noreferrer" title={url}>
          Open in a new tab
        </a>
      ) : (
        <code class={css["where"]}>{url}</code>
      )}
    </div>
  );
}
