/**
 * A field with what it finds below it, in groups. The focus stays in the field: arrow keys choose, Enter opens.
 */

import type { JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

import { wordsOf } from "../../api/errors";
import { focused } from "../../hooks/focused";
import { nextEntry } from "../../lib/entries";
import { addressOf, go } from "../../state/address";
import { Ago } from "../../ui/Ago";
import { type Found, KINDS, type Kind, TITLES } from "./kinds";
import css from "./SearchBox.module.css";
import { useSearch } from "./useSearch";

interface Props {
  text: string;
  onText: (text: string) => void;
  /** How many of each kind are shown. */
  count: number;
  kinds?: readonly Kind[];
  /** Called before a thing is opened, such as to close a dialog. */
  onOpen?: () => void;
  /** Shows more of a kind. */
  onMore: (kind: Kind) => void;
}

export function SearchBox({ text, onText, count, kinds = KINDS, onOpen, onMore }: Props): JSX.Element {
  const { answer, error, waiting } = useSearch(text, { kinds, count });
  const [chosen, setChosen] = useState<{ text: string | undefined; at: number }>({ text: undefined, at: 0 });
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const all = answer?.groups.flatMap(({ found }) => found) ?? [];
  const at = chosen.text === answer?.text ? chosen.at : 0; // another answer begins with its first
  useEffect(() => list.current?.querySelector(`[aria-selected="true"]`)?.scrollIntoView({ block: "nearest" }), [at]);

  function open(found: Found | undefined): void {
    if (!found) return;
    onOpen?.();
    go(found.to, found.with);
  }
  function onKeyDown(event: KeyboardEvent): void {
    if (event.key === "Enter") {
      event.preventDefault();
      open(all[at]);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setChosen({
        text: answer?.text,
        at:
          nextEntry(
            event.key,
            at,
            all.map(({ title }) => title),
          ) ?? at,
      });
    }
  }
  const shown = answer?.groups ?? [];
  return (
    <div class={css["search"]}>
      <input
        type="search"
        class={css["field"]}
        role="combobox"
        list={undefined}
        aria-label="Search projects, runs, models, reports and parameters"
        aria-expanded={all.length > 0}
        aria-controls={`${id}-list`}
        aria-autocomplete="list"
        {...(all[at] && { "aria-activedescendant": `${id}-${at}` })}
        placeholder="Search projects, runs, models, reports, lr=0.1"
        value={text}
        ref={focused}
        spellcheck={false}
        maxLength={500}
        onInput={(event) => onText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <p class={css["status"]} role="status">
        {error
          ? wordsOf(error)
          : waiting
            ? "Searching…"
            : !all.length
              ? text
                ? `Nothing has all words of “${text}” in its name, id or comment. A parameter is found as “lr=0.1”.`
                : "There is nothing yet."
              : text
                ? ""
                : "Changed last"}
      </p>
      <div
        ref={list}
        id={`${id}-list`}
        role="listbox"
        aria-label="What was found"
        class={css["list"]}
        data-waiting={waiting ? "" : undefined}
      >
        {shown.map(({ kind, found }) => (
          <div key={kind} role="group" aria-label={TITLES[kind]}>
            <div class={css["head"]} aria-hidden="true">
              {TITLES[kind]}
            </div>
            {found.map((one) => {
              const place = all.indexOf(one);
              return (
                <Option key={one.id} id={`${id}-${place}`} found={one} chosen={place === at} open={() => open(one)} />
              );
            })}
          </div>
        ))}
      </div>
      {shown.some(({ more }) => more) && (
        <div class={css["more"]}>
          {shown
            .filter(({ more }) => more)
            .map(({ kind }) => (
              <button key={kind} type="button" onClick={() => onMore(kind)}>
                More {TITLES[kind].toLowerCase()}
              </button>
            ))}
        </div>
      )}
    </div>
  );
}

interface OptionProps {
  id: string;
  found: Found;
  chosen: boolean;
  open: () => void;
}

function Option({ id, found, chosen, open }: OptionProps): JSX.Element {
  return (
    <a
      id={id}
      role="option"
      aria-selected={chosen}
      tabIndex={-1}
      href={addressOf(found.to, found.with)}
      class={css["option"]}
      onClick={(event) => {
        if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        open();
      }}
    >
      <span class={css["title"]} title={found.title}>
        {found.title}
      </span>
      <span class={css["notes"]}>{found.notes.join(" · ")}</span>
      <span class={css["time"]}>
        <Ago time={found.time} />
      </span>
    </a>
  );
}
