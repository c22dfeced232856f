/** A table that a run reported. A click on a head sorts by its column. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import type { Table } from "../frame/plot";
import { counted } from "../lib/times";
import css from "./ValueTable.module.css";

/** Rows that are shown at first, and that each click adds. */
const FEW = 200;

export function ValueTable({ table, name }: { table: Table; name: string }): JSX.Element {
  const [most, setMost] = useState(FEW);
  const [sorted, setSorted] = useState<{ column: number; down: boolean } | null>(null);
  const rows = sorted ? inOrder(table, sorted.column, sorted.down) : table.rows;
  const left = rows.length - most;
  return (
    <div class={css["around"]} role="region" aria-label={name} tabIndex={0}>
      <table class={css["table"]}>
        <thead>
          <tr>
            {table.heads.map((head, column) => (
              <th
                key={column}
                scope="col"
                data-number={table.numbers[column]}
                aria-sort={sorted?.column === column ? (sorted.down ? "descending" : "ascending") : "none"}
              >
                <button type="button" onClick={() => setSorted(next(sorted, column))}>
                  {head || " "}
                  <span aria-hidden="true">{sorted?.column === column ? (sorted.down ? " ↓" : " ↑") : ""}</span>
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, most).map((row, at) => (
            <tr key={at}>
              {row.map((cell, column) => (
                <td key={column} data-number={table.numbers[column]}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {left > 0 && (
        <button type="button" class={css["more"]} onClick={() => setMost(most + 5 * FEW)}>
          {counted(left)} more rows
        </button>
      )}
    </div>
  );
}

/** A column is sorted up, then down, then not at all. */
function next(sorted: { column: number; down: boolean } | null, column: number): typeof sorted {
  if (sorted?.column !== column) return { column, down: false };
  return sorted.down ? null : { column, down: true };
}

function inOrder(table: Table, column: number, down: boolean): Table["rows"] {
  const sign = down ? -1 : 1;
  const number = table.numbers[column];
  return table.rows.toSorted((one, other) => {
    const [a = "", b = ""] = [one[column], other[column]];
    if (number) return sign * ((a === "" ? -Infinity : +a) - (b === "" ? -Infinity : +b) || 0);
    return sign * a.localeCompare(b, "en", { numeric: true });
  });
}
