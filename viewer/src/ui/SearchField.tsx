/** A field that narrows what is shown, or asks for it. Escape empties it. */

import type { JSX, Ref } from "preact";

import css from "./SearchField.module.css";

interface Props {
  label: string;
  value: string;
  onInput: (value: string) => void;
  onKeyDown?: (event: KeyboardEvent) => void;
  field?: Ref<HTMLInputElement>;
}

export function SearchField({ label, value, onInput, onKeyDown, field }: Props): JSX.Element {
  return (
    <input
      ref={field ?? null}
      type="search"
      class={css["field"]}
      placeholder={label}
      aria-label={label}
      value={value}
      spellcheck={false}
      onInput={(event) => onInput(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key === "Escape" && value) {
          event.preventDefault();
          onInput("");
        } else onKeyDown?.(event);
      }}
    />
  );
}
