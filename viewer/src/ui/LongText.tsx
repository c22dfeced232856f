/**
 * A text of many lines: its beginning, and all of it when that is asked for. A search shows only the lines that match.
 *
 * Texts may have megabytes. So many lines are drawn at most; all of it can be saved and copied.
 */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { type Line, linesOf } from "../lib/lines";
import { counted } from "../lib/times";
import { Copy } from "./Copy";
import css from "./LongText.module.css";

const FOLDED = 16;
const MOST = 4000;

interface Props {
  text: string;
  /** What the text is, for its buttons: "diff". */
  what: string;
  /** The name of the file when it is saved. */
  fileName: string;
  search?: string;
  /** A class for a line, such as that of a line that was added. */
  kindOf?: (line: string) => string;
}

export function LongText({ text, what, fileName, search = "", kindOf }: Props): JSX.Element {
  const [open, setOpen] = useState(false);
  const { lines, count, matches } = linesOf(text, search, open || search ? MOST : FOLDED);
  return (
    <div class={css["text"]}>
      <div class={css["tools"]}>
        <Copy text={text} what={what} />
        <button type="button" onClick={() => save(text, fileName)}>
          Save
        </button>
      </div>
      <pre tabIndex={0} aria-label={what}>
        {lines.map((line) => (
          <Row key={line.number} line={line} kind={kindOf?.(line.text) ?? ""} />
        ))}
      </pre>
      {search ? (
        matches > lines.length && (
          <p>
            {counted(matches)} lines match; the first {counted(MOST)} are shown.
          </p>
        )
      ) : count > FOLDED ? (
        <p>
          {open && count > MOST && `The first ${counted(MOST)} of ${counted(count)} lines. Save it to see the rest. `}
          <button type="button" onClick={() => setOpen(!open)}>
            {open ? "Show less" : `Show all ${counted(count)} lines`}
          </button>
        </p>
      ) : null}
    </div>
  );
}

function Row({ line, kind }: { line: Line; kind: string }): JSX.Element {
  return (
    <span class={css["line"]} data-kind={kind} data-number={line.number}>
      {line.text}
      {"\n"}
    </span>
  );
}

/** Let the browser save a text as a file. */
export function save(text: string, fileName: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  const link = document.createElement("a");
  link.href = address;
  link.download = fileName;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
