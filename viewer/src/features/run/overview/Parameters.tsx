/** The parameters of a run, by section. Those of a draft can be changed. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { api } from "../../../api/client";
import { useOnce, useShown } from "../../../hooks/once";
import { whyNotEdited } from "../../../lib/possible";
import { mayEdit } from "../../../state/session";
import { attempt } from "../../../state/toasts";
import { Copy } from "../../../ui/Copy";
import { SearchField } from "../../../ui/SearchField";
import { Section } from "../../../ui/Section";
import type { Task } from "../task";
import { changesOf, type Details, type Parameter, sectionsOf } from "./details";
import css from "./Overview.module.css";

/** More rows are shown when they are asked for. */
const MOST = 300;

interface Props {
  task: Task;
  found: Details["hyperparams"];
  changed: () => void;
}

export function Parameters({ task, found, changed }: Props): JSX.Element {
  const [search, setSearch] = useState("");
  const [editing, setEditing] = useState(false);
  const sections = sectionsOf(found);
  const count = sections.reduce((sum, { parameters }) => sum + parameters.length, 0);
  const why = whyNotEdited(task);
  const tools = (
    <>
      {count > 0 && !editing && <SearchField label="Search parameters" value={search} onInput={setSearch} />}
      {mayEdit(task) && !editing && (
        <button
          type="button"
          disabled={why !== null}
          title={why ?? "Change, add or remove parameters"}
          onClick={() => setEditing(true)}
        >
          Edit
        </button>
      )}
    </>
  );
  return (
    <Section title="Parameters" count={count} tools={tools}>
      {editing ? (
        <Editor
          task={task}
          found={sections.flatMap(({ parameters }) => parameters)}
          close={() => setEditing(false)}
          changed={changed}
        />
      ) : count ? (
        sections.map(({ section, parameters }) => (
          <Table key={section} section={section} parameters={parameters} search={search} />
        ))
      ) : (
        <p class={css["none"]}>The run has no parameters.</p>
      )}
    </Section>
  );
}

function Table({
  section,
  parameters,
  search,
}: {
  section: string;
  parameters: Parameter[];
  search: string;
}): JSX.Element | null {
  const [all, setAll] = useState(false);
  const wanted = search.toLowerCase();
  const matching = parameters.filter((one) =>
    `${section}/${one.name} ${one.value ?? ""}`.toLowerCase().includes(wanted),
  );
  if (!matching.length) return null;
  return (
    <>
      <table class={css["table"]}>
        <caption>{section}</caption>
        <tbody>
          {matching.slice(0, all ? undefined : MOST).map((one) => (
            <tr key={one.name}>
              <th scope="row" title={[one.description, one.type].filter(Boolean).join("\n") || undefined}>
                {one.name}
              </th>
              <td>
                <Value section={section} value={one.value ?? ""} />
                <span class={css["copy"]}>
                  <Copy text={one.value ?? ""} what={`value of ${one.name}`} />
                </span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {!all && matching.length > MOST && (
        <button type="button" onClick={() => setAll(true)}>
          Show all {matching.length}
        </button>
      )}
    </>
  );
}

const LONG = 400;

function Value({ section, value }: { section: string; value: string }): JSX.Element {
  const [open, setOpen] = useState(false);
  if (section === "Datasets" && /^[0-9a-f]{32}$/.test(value)) {
    return <a href={`/projects/*/tasks/${value}/overview`}>{value}</a>;
  }
  if (value.length <= LONG || open) return <code>{value}</code>;
  return (
    <>
      <code>{value.slice(0, LONG)}…</code>{" "}
      <button type="button" class={css["small"]} onClick={() => setOpen(true)}>
        Show all
      </button>
    </>
  );
}

interface EditorProps {
  task: Task;
  found: Parameter[];
  close: () => void;
  changed: () => void;
}

function Editor({ task, found, close, changed }: EditorProps): JSX.Element {
  // What others change meanwhile is no change of this user: it is neither shown here nor taken back.
  const [before] = useState(found);
  const [rows, setRows] = useState<Parameter[]>(before);
  const [saving, once] = useOnce();
  const isShown = useShown();
  const change = (at: number, part: Partial<Parameter>): void =>
    setRows(rows.map((row, n) => (n === at ? { ...row, ...part } : row)));
  async function save(): Promise<void> {
    const { set, remove } = changesOf(before, rows);
    const saved = await attempt(async () => {
      if (set.length) await api("tasks.edit_hyper_params", { task: task.id, hyperparams: set });
      if (remove.length) await api("tasks.delete_hyper_params", { task: task.id, hyperparams: remove });
    }, "The parameters are saved");
    if (saved && isShown()) close();
    if (saved) changed();
  }
  return (
    <form
      class={css["editor"]}
      onSubmit={(event) => {
        event.preventDefault();
        void once(save);
      }}
    >
      {rows.map((row, n) => {
        const isNew = !before.some((one) => one.section === row.section && one.name === row.name) || n >= before.length;
        return (
          <div key={n} class={css["row"]}>
            <input
              aria-label="Section"
              value={row.section}
              readOnly={!isNew}
              onInput={(e) => change(n, { section: e.currentTarget.value })}
            />
            <input
              aria-label="Name"
              value={row.name}
              readOnly={!isNew}
              onInput={(e) => change(n, { name: e.currentTarget.value })}
            />
            <input
              aria-label={row.name ? `Value of ${row.name}` : "Value"}
              value={row.value ?? ""}
              onInput={(e) => change(n, { value: e.currentTarget.value })}
            />
            <button
              type="button"
              aria-label={`Remove ${row.name || "the row"}`}
              title="Remove"
              onClick={() => setRows(rows.filter((_, other) => other !== n))}
            >
              ×
            </button>
          </div>
        );
      })}
      <div class={css["buttons"]}>
        <button
          type="button"
          onClick={() => setRows([...rows, { section: rows.at(-1)?.section ?? "Args", name: "", value: "" }])}
        >
          Add a parameter
        </button>
        <span class={css["space"]} />
        <button type="button" onClick={close}>
          Cancel
        </button>
        <button type="submit" class="primary" aria-busy={saving}>
          {saving ? "Saving…" : "Save"}
        </button>
      </div>
    </form>
  );
}
