/** The comment of a run or a model: text of its users. With `save` it can be changed. */

import type { JSX } from "preact";

import { useDraft } from "../hooks/draft";
import { focused } from "../hooks/focused";
import css from "./Comment.module.css";
import { Section } from "./Section";

interface Props {
  comment: string | undefined;
  /** Answers whether the server took it. */
  save?: (comment: string) => Promise<boolean>;
}

export function Comment({ comment, save }: Props): JSX.Element | null {
  const { draft, open, type, close, submit } = useDraft(save);
  if (!comment && !save) return null;
  const tools = save && draft === null && (
    <button type="button" onClick={() => open(comment ?? "")}>
      {comment ? "Edit" : "Add a comment"}
    </button>
  );
  return (
    <Section title="Comment" tools={tools}>
      {draft === null ? (
        <p class={css["comment"]}>{comment || <span class={css["soft"]}>Nobody has said anything yet.</span>}</p>
      ) : (
        <form
          class={css["editor"]}
          onSubmit={(event) => {
            event.preventDefault();
            submit();
          }}
        >
          <textarea
            aria-label="Comment"
            rows={4}
            value={draft.text}
            ref={draft.refused ? null : focused}
            onInput={(event) => type(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
              if (event.key === "Escape") close();
            }}
          />
          <div class={css["buttons"]}>
            <button type="button" onClick={close}>
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
