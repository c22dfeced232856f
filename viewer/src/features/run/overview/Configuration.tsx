/** The configuration objects of a run: long texts, folded, with a search. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { LongText } from "../../../ui/LongText";
import { SearchField } from "../../../ui/SearchField";
import { Section } from "../../../ui/Section";
import type { Details } from "./details";
import css from "./Overview.module.css";

export function Configuration({ found }: { found: Details["configuration"] }): JSX.Element | null {
  const [search, setSearch] = useState("");
  const all = Object.entries(found ?? {}).sort(([a], [b]) => a.localeCompare(b));
  if (!all.length) return null;
  const wanted = search.toLowerCase();
  const shown = all.filter(([name, one]) => `${name}\n${one.value ?? ""}`.toLowerCase().includes(wanted));
  return (
    <Section
      title="Configuration"
      count={all.length}
      tools={<SearchField label="Search configuration" value={search} onInput={setSearch} />}
    >
      {shown.map(([name, one]) => (
        <div key={name} class={css["object"]}>
          <h3>
            {name} {one.type && <span class={css["soft"]}>{one.type}</span>}
          </h3>
          {one.description && <p class={css["soft"]}>{one.description}</p>}
          <LongText text={one.value ?? ""} what={name} fileName={name} search={search} />
        </div>
      ))}
      {!shown.length && <p class={css["none"]}>Nothing has this text.</p>}
    </Section>
  );
}
