/** Makes or changes one filter: first which column, then what its values may be. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import { data } from "../../api/client";
import { useAsked } from "../../hooks/asked";
import { focused } from "../../hooks/focused";
import { statusText } from "../../lib/status";
import { counted } from "../../lib/times";
import { namesById, wantNames } from "../../state/names";
import { Dialog } from "../../ui/Dialog";
import css from "../../ui/Forms.module.css";
import { Waiting } from "../../ui/Notice";
import { columnOf, FIELD_NAMES, textOf } from "./columns";
import { useFacts } from "./facts";
import { type Asks, asksOf } from "./filters";
import { type Condition, type Shown, whereOf } from "./shown";

interface Props {
  readonly project: string;
  readonly shown: Shown;
  /** null: a new one. */
  readonly condition: Condition | null;
  readonly done: (condition: Condition | null) => void;
  readonly onClose: () => void;
}

const LABELS: Readonly<Record<Asks, string>> = { values: "One of", range: "Number", times: "Time", text: "Text" };

export function FilterDialog({ project, shown, condition, done, onClose }: Props): JSX.Element {
  const [column, setColumn] = useState(condition?.[0] ?? "status");
  const possible = asksOf(columnOf(column).kind);
  const [asks, setAsks] = useState<Asks>(condition ? asksFor(condition) : possible[0]!);
  const facts = useFacts(project, shown.inside, true);
  const current = condition?.[0] === column ? condition : null;
  const way = possible.includes(asks) ? asks : possible[0]!;
  const shared = { column, current, done };
  return (
    <Dialog title={condition ? "Change the filter" : "Filter runs"} onClose={onClose}>
      <div class={css["form"]}>
        <label>
          Column
          <select value={column} onChange={(event) => setColumn(event.currentTarget.value)}>
            <optgroup label="Run">
              {FIELD_NAMES.map((name) => (
                <option key={name} value={name}>
                  {columnOf(name).title}
                </option>
              ))}
            </optgroup>
            <optgroup label="Parameters">
              {withOne(facts.value?.parameters ?? [], column, "hyperparams.").map((name) => (
                <option key={name} value={name}>
                  {name.slice("hyperparams.".length)}
                </option>
              ))}
            </optgroup>
            <optgroup label="Metrics">
              {withOne(
                (facts.value?.curves ?? []).flatMap((one) => [`last:${one}`, `min:${one}`, `max:${one}`]),
                column,
                ":",
              ).map((name) => (
                <option key={name} value={name}>
                  {columnOf(name).title} ({columnOf(name).note})
                </option>
              ))}
            </optgroup>
          </select>
        </label>
        {possible.length > 1 && (
          <fieldset>
            <legend class="hidden-but-read">How</legend>
            {possible.map((one) => (
              <label key={one}>
                <input type="radio" name="asks" checked={one === way} onChange={() => setAsks(one)} /> {LABELS[one]}
              </label>
            ))}
          </fieldset>
        )}
        {way === "values" && <Values key={column} {...shared} {...{ project, shown }} />}
        {way === "range" && <Range key={column} {...shared} />}
        {way === "times" && <Times key={column} {...shared} />}
        {way === "text" && <Text key={column} {...shared} />}
      </div>
    </Dialog>
  );
}

function asksFor([column, test]: Condition): Asks {
  if (test.startsWith("contains")) return "text";
  if (test.startsWith("is")) return "values";
  return columnOf(column).kind === "time" ? "times" : "range";
}

/** The names, and the chosen one if it is one of their kind, even before they are known. */
function withOne(names: readonly string[], chosen: string, kind: string): readonly string[] {
  const belongs = kind === ":" ? /^[a-z_]+:/.test(chosen) : chosen.startsWith(kind);
  return belongs && !names.includes(chosen) ? [chosen, ...names] : names;
}

interface WayProps {
  readonly column: string;
  readonly current: Condition | null;
  readonly done: (condition: Condition | null) => void;
}

function Buttons({
  can,
  current,
  done,
}: {
  can: boolean;
  current: Condition | null;
  done: WayProps["done"];
}): JSX.Element {
  return (
    <div class={css["buttons"]}>
      {current && (
        <button type="button" onClick={() => done(null)}>
          Remove the filter
        </button>
      )}
      <button type="submit" class="primary" disabled={!can}>
        Filter
      </button>
    </div>
  );
}

/** Checkboxes of all values that there are, with how many runs have each. */
function Values({ column, current, done, project, shown }: WayProps & { project: string; shown: Shown }): JSX.Element {
  const [not, setNot] = useState(current?.[1] === "is not");
  const [chosen, setChosen] = useState<ReadonlySet<string | number | null>>(
    new Set(current?.[1].startsWith("is") ? (current.slice(2) as (string | number | null)[]) : []),
  );
  const [search, setSearch] = useState("");
  const others = { ...shown, conditions: shown.conditions.filter((one) => one !== current) };
  const asked = useAsked(column, (signal) =>
    data<{ value: string | number | null; tasks: number }[]>(
      `/data/projects/${encodeURIComponent(project)}/groups.json`,
      { by: column, where: whereOf(others), recursive: shown.inside ? 1 : 0 },
      signal,
    ),
  );
  const { kind } = columnOf(column);
  const names = namesById();
  useEffect(() => {
    const of = ({ user: "users", project: "projects", parent: "tasks" } as const)[column];
    if (of) wantNames(of, asked.value?.map((one) => one.value) ?? []);
  }, [column, asked.value]);
  const text = (value: string | number | null): string => {
    if (value === null) return "none";
    return column === "status" ? statusText(String(value)) : textOf(kind, value, names);
  };
  const found = (asked.value ?? []).filter((one) => text(one.value).toLowerCase().includes(search.toLowerCase()));
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        done([column, not ? "is not" : "is", ...chosen]);
      }}
    >
      {(asked.value?.length ?? 0) > 12 && (
        <input
          type="search"
          placeholder="Search values…"
          aria-label="Search values"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
      )}
      {asked.error && <p role="alert">{asked.error.message}</p>}
      {asked.waiting && !asked.value && <Waiting />}
      <div class={css["list"]} role="group" aria-label="Values">
        {found.slice(0, 200).map(({ value, tasks }) => (
          <label key={JSON.stringify(value)}>
            <input
              type="checkbox"
              checked={chosen.has(value)}
              onChange={() => {
                const next = new Set(chosen);
                if (!next.delete(value)) next.add(value);
                setChosen(next);
              }}
            />
            <span>{text(value)}</span>
            <small>{counted(tasks)}</small>
          </label>
        ))}
        {found.length > 200 && <p>{counted(found.length - 200)} more: search for them.</p>}
      </div>
      <label>
        <input type="checkbox" checked={not} onChange={() => setNot(!not)} /> All runs but these
      </label>
      <Buttons can={chosen.size > 0} current={current} done={done} />
    </form>
  );
}

const COMPARED = [
  ["<=", "at most"],
  [">=", "at least"],
  ["<", "less than"],
  [">", "greater than"],
] as const;

function Range({ column, current, done }: WayProps): JSX.Element {
  const known = COMPARED.some(([test]) => test === current?.[1]);
  const [test, setTest] = useState<string>(known ? current![1] : "<=");
  const [value, setValue] = useState(known ? String(current![2]) : "");
  const number = Number(value.trim().replace(",", "."));
  const can = value.trim() !== "" && Number.isFinite(number);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (can) done([column, test, number]);
      }}
    >
      <div class={css["pair"]}>
        <select aria-label="How it compares" value={test} onChange={(event) => setTest(event.currentTarget.value)}>
          {COMPARED.map(([one, words]) => (
            <option key={one} value={one}>
              {words}
            </option>
          ))}
        </select>
        <input
          inputMode="decimal"
          aria-label="Number"
          placeholder="0.01"
          value={value}
          onInput={(event) => setValue(event.currentTarget.value)}
          ref={focused}
        />
      </div>
      {value.trim() !== "" && !can && <p role="alert">That is no number. Write 0.001 or 1e-3.</p>}
      <p class={css["hint"]}>For a range, add two filters.</p>
      <Buttons can={can} current={current} done={done} />
    </form>
  );
}

function Times({ column, current, done }: WayProps): JSX.Element {
  const known = current && typeof current[2] === "string";
  const [test, setTest] = useState(known ? current[1] : ">=");
  const [value, setValue] = useState(
    known ? localTime(String(current[2])) : localTime(new Date(Date.now() - 7 * 86400e3).toISOString()),
  );
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (value) done([column, test, new Date(value).toISOString().slice(0, 19)]);
      }}
    >
      <div class={css["pair"]}>
        <select aria-label="Before or after" value={test} onChange={(event) => setTest(event.currentTarget.value)}>
          <option value=">=">after</option>
          <option value="<=">before</option>
        </select>
        <input
          type="datetime-local"
          aria-label="Time"
          value={value}
          onInput={(event) => setValue(event.currentTarget.value)}
        />
      </div>
      <Buttons can={Boolean(value)} current={current} done={done} />
    </form>
  );
}

/** A UTC time as a field for local times has it. */
function localTime(utc: string): string {
  const time = new Date(/Z$/.test(utc) ? utc : `${utc}Z`);
  return new Date(time.getTime() - time.getTimezoneOffset() * 60e3).toISOString().slice(0, 16);
}

function Text({ column, current, done }: WayProps): JSX.Element {
  const known = current?.[1].startsWith("contains") && typeof current[2] === "string";
  const [test, setTest] = useState(known ? current![1] : "contains");
  const [value, setValue] = useState(known ? String(current![2]) : "");
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (value) done([column, test, value]);
      }}
    >
      <div class={css["pair"]}>
        <select aria-label="With or without" value={test} onChange={(event) => setTest(event.currentTarget.value)}>
          <option value="contains">contains</option>
          <option value="contains not">does not contain</option>
        </select>
        <input
          aria-label="Text"
          value={value}
          maxLength={500}
          ref={focused}
          onInput={(event) => setValue(event.currentTarget.value)}
        />
      </div>
      <Buttons can={value !== ""} current={current} done={done} />
    </form>
  );
}
