/** Chooses the columns: fields of runs, parameters, numbers of curves, and the curve that is drawn in each row. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { wordsOf } from "../../api/errors";
import { focused } from "../../hooks/focused";
import { Dialog } from "../../ui/Dialog";
import css from "../../ui/Forms.module.css";
import { Waiting } from "../../ui/Notice";
import { columnOf, FIELD_NAMES, NUMBERS, withColumn } from "./columns";
import { useFacts } from "./facts";
import type { Shown } from "./shown";

interface Props {
  readonly project: string;
  readonly shown: Shown;
  readonly change: (part: Partial<Shown>) => void;
  readonly onClose: () => void;
}

/** Of each kind; a search finds the others. */
const MOST = 300;

export function ColumnsDialog({ project, shown, change, onClose }: Props): JSX.Element {
  const [search, setSearch] = useState("");
  const facts = useFacts(project, shown.inside, true);
  const found = (name: string): boolean => name.toLowerCase().includes(search.trim().toLowerCase());

  function toggle(name: string): void {
    const without = shown.columns.filter((one) => one !== name);
    if (without.length < shown.columns.length) {
      if (without.length) change({ columns: without });
    } else change({ columns: withColumn(shown.columns, name) });
  }

  const fields = FIELD_NAMES.filter((name) => found(columnOf(name).title));
  const parameters = (facts.value?.parameters ?? []).filter(found);
  const curves = (facts.value?.curves ?? []).filter(found);

  return (
    <Dialog title="Columns" onClose={onClose}>
      <div class={css["form"]}>
        <input
          type="search"
          placeholder="Search fields, parameters and metrics…"
          aria-label="Search columns"
          value={search}
          ref={focused}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        {facts.error && <p role="alert">{wordsOf(facts.error)}</p>}
        <div class={css["list"]}>
          {fields.length > 0 && <h3>Run</h3>}
          {fields.map((name) => (
            <Choice key={name} name={name} chosen={shown.columns.includes(name)} toggle={() => toggle(name)} />
          ))}
          {parameters.length > 0 && <h3>Parameters</h3>}
          {parameters.slice(0, MOST).map((name) => (
            <Choice key={name} name={name} chosen={shown.columns.includes(name)} toggle={() => toggle(name)} />
          ))}
          {curves.length > 0 && <h3>Metrics</h3>}
          {curves.slice(0, MOST).map((curve) => (
            <div key={curve} role="group" aria-label={curve}>
              <span class={css["metric"]}>{curve}</span>
              <span class={css["numbers"]}>
                <button
                  type="button"
                  aria-pressed={shown.curve === curve}
                  onClick={() => change({ curve: shown.curve === curve ? "" : curve })}
                >
                  curve
                </button>
                {Object.entries(NUMBERS).map(([prefix, words]) => (
                  <button
                    key={prefix}
                    type="button"
                    aria-pressed={shown.columns.includes(`${prefix}:${curve}`)}
                    onClick={() => toggle(`${prefix}:${curve}`)}
                  >
                    {words}
                  </button>
                ))}
              </span>
            </div>
          ))}
          {facts.waiting && !facts.value && <Waiting what="Looking for parameters and metrics" />}
          {(parameters.length > MOST || curves.length > MOST) && <p>There are more: search for them.</p>}
        </div>
        <div class={css["buttons"]}>
          <button type="button" onClick={() => change({ columns: [], curve: "" })}>
            As usual
          </button>
          <button type="button" class="primary" onClick={onClose}>
            Done
          </button>
        </div>
      </div>
    </Dialog>
  );
}

function Choice({ name, chosen, toggle }: { name: string; chosen: boolean; toggle: () => void }): JSX.Element {
  const { title, note } = columnOf(name);
  return (
    <label>
      <input type="checkbox" checked={chosen} onChange={toggle} />
      <span>{title}</span>
      <small>{note}</small>
    </label>
  );
}
