/** The tags of a thing; with `change` they can be added and removed. */

import type { JSX } from "preact";
import { useId } from "preact/hooks";

import { api, ServerError } from "../api/client";
import { useAsked } from "../hooks/asked";
import { type Draft, type Drafting, useDraft } from "../hooks/draft";
import { focused } from "../hooks/focused";
import css from "./Tags.module.css";

/** What is changed, as the endpoints `update_tags` take it: the other tags stay, also those that others add meanwhile. */
export type TagChange = { readonly add_tags: readonly string[] } | { readonly remove_tags: readonly string[] };

interface Props {
  tags: readonly string[];
  /** Called with the tags as they will be, and with the one that comes or goes; answers whether the server took it. */
  change?: (tags: readonly string[], by: TagChange) => Promise<boolean>;
}

/** Change the tags of a task or a model. */
export async function changeTags(
  endpoint: "tasks.update_tags" | "models.update_tags",
  id: string,
  by: TagChange,
): Promise<void> {
  const { updated } = await api(endpoint, { ids: [id], ...by });
  if (!updated)
    throw new ServerError(404, "The tags were not changed: what has them was deleted, or you may not change it");
}

export function Tags({ tags, change }: Props): JSX.Element {
  async function add(text: string): Promise<boolean> {
    const tag = text.trim();
    return !tag || tags.includes(tag) || !change || change([...tags, tag], { add_tags: [tag] });
  }
  const drafting = useDraft(add);
  return (
    <span class={css["tags"]} role="group" aria-label="Tags">
      {tags.map((tag) => (
        <span key={tag} class={css["tag"]}>
          <span title={tag}>{tag}</span>
          {change && (
            <button
              type="button"
              aria-label={`Remove the tag ${tag}`}
              onClick={() =>
                void change(
                  tags.filter((one) => one !== tag),
                  { remove_tags: [tag] },
                )
              }
            >
              ×
            </button>
          )}
        </span>
      ))}
      {change && !drafting.draft && (
        <button type="button" class={css["add"]} onClick={() => drafting.open("")}>
          + tag
        </button>
      )}
      {change && drafting.draft && <NewTag {...drafting} draft={drafting.draft} />}
    </span>
  );
}

/** A field for a tag; it offers those that there are. */
function NewTag({ draft, type, submit, close }: Drafting & { draft: Draft }): JSX.Element {
  const list = useId();
  const known = useAsked("tags", (signal) => api("organization.get_tags", {}, signal));
  return (
    <>
      <input
        aria-label="New tag"
        class={css["field"]}
        list={list}
        value={draft.text}
        ref={draft.refused ? null : focused}
        maxLength={200}
        onInput={(event) => type(event.currentTarget.value)}
        onBlur={submit}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.isComposing) submit();
          if (event.key === "Escape") close();
        }}
      />
      <datalist id={list}>
        {known.value?.tags.slice(0, 500).map((tag) => (
          <option key={tag} value={tag} />
        ))}
      </datalist>
    </>
  );
}
