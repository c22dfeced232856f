/** The main heading of a page; with `save` it can be changed in its place. */

import type { JSX } from "preact";
import { useRef } from "preact/hooks";

import { useDraft } from "../hooks/draft";
import { focused } from "../hooks/focused";
import css from "./EditableTitle.module.css";

interface Props {
  text: string;
  /** What the text is: "name of the run". */
  what: string;
  /** Answers whether the server took it. */
  save?: (text: string) => Promise<boolean>;
}

export function EditableTitle({ text, what, save }: Props): JSX.Element {
  const { draft, open, type, close, submit } = useDraft(save && ((wanted) => save(wanted.trim())));
  /** Whether a key has closed the field: then the focus returns to the button. */
  const byKey = useRef(false);
  if (draft === null) {
    return (
      <div class={css["title"]}>
        <h1 class="clamped" title={text}>
          {text}
        </h1>
        {save && (
          <button
            type="button"
            title={`Change the ${what}`}
            aria-label={`Change the ${what}`}
            ref={byKey.current ? focused : null}
            onClick={() => {
              byKey.current = false;
              open(text);
            }}
          >
            ✎
          </button>
        )}
      </div>
    );
  }
  const done = draft.text.trim() ? submit : close;
  return (
    <input
      class={css["field"]}
      aria-label={what}
      value={draft.text}
      ref={draft.refused ? null : focused}
      onInput={(event) => type(event.currentTarget.value)}
      onBlur={done}
      onKeyDown={(event) => {
        byKey.current = event.key === "Escape" || (event.key === "Enter" && !event.isComposing);
        if (!byKey.current) return;
        event.preventDefault(); // the same press would choose the button
        if (event.key === "Enter") done();
        else close();
      }}
    />
  );
}
