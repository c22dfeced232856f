/** The comment of a run or a model: text of its users. With `save` it can be changed. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import css from "./Comment.module.css";
import { focused } from "./focused";
import { Section } from "./Section";

interface Props {
  comment: string | undefined;
  /** Answers whether the server took it. */
  save?: (comment: string) => Promise<boolean>;
}

export function Comment({ comment, save }: Props): JSX.Element | null {
  const [draft, setDraft] = useState<string | null>(null);
  if (!comment && !save) return null;
  const tools = save && draft === null && (
    <button type="button" onClick={() => setDraft(comment ?? "")}>
      {comment ? "Edit" : "Add a comment"}
    </button>
  );
  async function submit(): Promise<void> {
    const wanted = draft ?? "";
    setDraft(null);
    if (!(await save?.(wanted))) setDraft(wanted);
  }
  return (
    <Section title="Comment" tools={tools}>
      {draft === null ? (
        <p class={css["comment"]}>{comment || <span class={css["soft"]}>Nobody has said anything yet.</span>}</p>
      ) : (
        <form
          class={css["editor"]}
          onSubmit={(event) => {
            event.preventDefault();
            void submit();
          }}
        >
          <textarea
            aria-label="Comment"
            rows={4}
            value={draft}
            ref={focused}
            onInput={(event) => setDraft(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void submit();
              if (event.key === "Escape") setDraft(null);
            }}
          />
          <div class={css["buttons"]}>
            <button type="button" onClick={() => setDraft(null)}>
              Cancel
            </button>
            <button type="submit" class="primary">
              Save
            </button>
          </div>
        </form>
      )}
    </Section>
  );
}
