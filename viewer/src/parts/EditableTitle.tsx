/** The main heading of a page; with `save` it can be changed in its place. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import css from "./EditableTitle.module.css";
import { focused } from "./focused";

interface Props {
  text: string;
  /** What the text is: "name of the run". */
  what: string;
  save?: (text: string) => void;
}

export function EditableTitle({ text, what, save }: Props): JSX.Element {
  const [draft, setDraft] = useState<string | null>(null);
  function done(): void {
    const wanted = draft?.trim();
    setDraft(null);
    if (wanted && wanted !== text) save?.(wanted);
  }
  if (draft === null) {
    return (
      <div class={css["title"]}>
        <h1>{text}</h1>
        {save && (
          <button type="button" title={`Change the ${what}`} aria-label={`Change the ${what}`} onClick={() => setDraft(text)}>
            ✎
          </button>
        )}
      </div>
    );
  }
  return (
    <input
      class={css["field"]}
      aria-label={what}
      value={draft}
      ref={focused}
      onInput={(event) => setDraft(event.currentTarget.value)}
      onBlur={done}
      onKeyDown={(event) => {
        if (event.key === "Enter") done();
        if (event.key === "Escape") setDraft(null);
      }}
    />
  );
}
