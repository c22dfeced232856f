/** A field that chooses a column. */

import type { JSX } from "preact";

import { type Column, isMonitor, NUMBERS } from "./runs";

interface Props {
  label: string;
  columns: ReadonlyMap<string, Column>;
  value: string;
  choose: (name: string) => void;
  /** What can be chosen besides columns, by the value that stands for it. */
  others?: Readonly<Record<string, string>>;
  /** Which columns can be chosen. */
  only?: (column: Column) => boolean;
}

const TITLES = { last: "Metrics: last value", min: "Metrics: least value", max: "Metrics: greatest value" } as const;

export function Choice({ label, columns, value, choose, others = {}, only = () => true }: Props): JSX.Element {
  const possible = [...columns.values()].filter((one) => one.name !== "name" && only(one));
  const groups: [string, Column[]][] = [
    ["Parameters", possible.filter((one) => one.kind === "parameter")],
    ...NUMBERS.map((number): [string, Column[]] => [
      TITLES[number],
      possible.filter((one) => one.kind === "metric" && !isMonitor(one) && one.name.startsWith(`${number}:`)),
    ]),
    ["Run", possible.filter((one) => one.kind === "field")],
    ["Machine", possible.filter((one) => one.kind === "metric" && isMonitor(one) && one.name.startsWith("max:"))],
  ];
  return (
    <label>
      {label}
      <select value={value} onChange={(event) => choose(event.currentTarget.value)}>
        {Object.entries(others).map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
        {groups.map(
          ([title, some]) =>
            some.length > 0 && (
              <optgroup key={title} label={title}>
                {some.map((column) => (
                  <option key={column.name} value={column.name}>
                    {column.label}
                  </option>
                ))}
              </optgroup>
            ),
        )}
      </select>
    </label>
  );
}
