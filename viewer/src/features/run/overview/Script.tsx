/** What ran: repository, commit, entry point, what was not committed, and the packages. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { diffKind } from "../../../lib/lines";
import { Copy } from "../../../ui/Copy";
import { FactList } from "../../../ui/FactList";
import { LongText } from "../../../ui/LongText";
import { SearchField } from "../../../ui/SearchField";
import { Section } from "../../../ui/Section";
import { type Details, packagesOf } from "./details";
import css from "./Overview.module.css";

export function Script({ script, name }: { script: Details["script"]; name: string }): JSX.Element | null {
  if (!script) return null;
  const facts: readonly (readonly [string, string | undefined])[] = [
    ["Repository", script.repository],
    ["Commit", script.version_num],
    ["Branch", script.branch],
    ["Tag", script.tag],
    ["Entry point", script.entry_point],
    ["Working directory", script.working_dir],
    ["Run by", script.binary],
  ];
  const known = facts.filter((fact): fact is readonly [string, string] => Boolean(fact[1]));
  const isDiff = /^(diff |--- |@@ )/m.test(script.diff ?? "");
  return (
    <>
      {known.length > 0 && (
        <Section title="Script">
          <FactList>
            {known.map(([label, value]) => (
              <div key={label}>
                <dt>{label}</dt>
                <dd>
                  <code>{value}</code> <Copy text={value} what={label.toLowerCase()} />
                </dd>
              </div>
            ))}
          </FactList>
        </Section>
      )}
      {script.diff && (
        <Section title={isDiff ? "Changes that are not committed" : "Source"}>
          <LongText
            text={script.diff}
            what={isDiff ? "diff" : "source"}
            fileName={`${name}.${isDiff ? "diff" : "py"}`}
            {...(isDiff && { kindOf: diffKind })}
          />
        </Section>
      )}
      <Packages requirements={script.requirements} />
    </>
  );
}

const MOST = 12;

function Packages({
  requirements,
}: {
  requirements: Readonly<Record<string, unknown>> | undefined;
}): JSX.Element | null {
  const [search, setSearch] = useState("");
  const [all, setAll] = useState(false);
  const packages = packagesOf(requirements);
  if (!packages.length) return null;
  const managers = new Set(packages.map(({ manager }) => manager));
  const matching = packages.filter(({ name, version }) =>
    `${name} ${version}`.toLowerCase().includes(search.toLowerCase()),
  );
  const shown = matching.slice(0, all || search ? 2000 : MOST);
  return (
    <Section
      title="Packages"
      count={packages.length}
      tools={<SearchField label="Search packages" value={search} onInput={setSearch} />}
    >
      <ul class={css["packages"]}>
        {shown.map(({ manager, name, version }) => (
          <li key={`${manager} ${name}`}>
            {name} <code>{version}</code>
            {managers.size > 1 && <span class={css["soft"]}> {manager}</span>}
          </li>
        ))}
      </ul>
      {!shown.length && <p class={css["none"]}>No package has this name.</p>}
      {matching.length > shown.length && (
        <button type="button" class={css["small"]} onClick={() => setAll(true)}>
          Show all {matching.length}
        </button>
      )}
    </Section>
  );
}
