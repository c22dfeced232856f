/** The tags of a thing; with `save` they can be added and removed. */

import type { JSX } from "preact";
import { useId, useState } from "preact/hooks";

import { api } from "../api/client";
import { useAsked } from "./asked";
import { focused } from "./focused";
import css from "./Tags.module.css";

interface Props {
  tags: readonly string[];
  save?: (tags: readonly string[]) => void;
}

export function Tags({ tags, save }: Props): JSX.Element {
  const [adding, setAdding] = useState(false);
  return (
    <span class={css["tags"]} role="group" aria-label="Tags">
      {tags.map((tag) => (
        <span key={tag} class={css["tag"]}>
          {tag}
          {save && (
            <button type="button" aria-label={`Remove the tag ${tag}`} onClick={() => save(tags.filter((one) => one !== tag))}>
              ×
            </button>
          )}
        </span>
      ))}
      {save && !adding && (
        <button type="button" class={css["add"]} onClick={() => setAdding(true)}>
          + tag
        </button>
      )}
      {save && adding && (
        <NewTag
          done={(tag) => {
            setAdding(false);
            if (tag && !tags.includes(tag)) save([...tags, tag]);
          }}
        />
      )}
    </span>
  );
}

/** A field for a tag; it offers those that there are. */
function NewTag({ done }: { done: (tag: string | null) => void }): JSX.Element {
  const [text, setText] = useState("");
  const list = useId();
  const known = useAsked("tags", (signal) => api<{ tags: string[] }>("organization.get_tags", {}, signal));
  return (
    <>
      <input
        aria-label="New tag"
        class={css["field"]}
        list={list}
        value={text}
        ref={focused}
        maxLength={200}
        onInput={(event) => setText(event.currentTarget.value)}
        onBlur={() => done(text.trim() || null)}
        onKeyDown={(event) => {
          if (event.key === "Enter") done(text.trim() || null);
          if (event.key === "Escape") done(null);
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
