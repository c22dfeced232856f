/** The head of the table: a click sorts, the edge of a heading resizes, and dragging it moves the column. */

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { remember, remembered } from "../../state/session";
import { Menu, type MenuItem } from "../../ui/Menu";
import { type Column, CURVE, isRight, isTextual } from "./columns";
import { moved, nextSort, type Shown } from "./shown";
import css from "./Table.module.css";

const NARROWEST = 48;
const WIDEST = 1200;

/** Pixels of columns that the user chose, in all tables of this browser. */
const widths = signal<Readonly<Record<string, number>>>(remembered("widths", {}));

export interface Widths {
  readonly of: (column: Column) => number;
  /** null: as usual. */
  readonly set: (column: Column, width: number | null) => void;
  readonly version: unknown;
}

export function useWidths(): Widths {
  const chosen = widths.value;
  return {
    of: (column) => chosen[column.name] ?? column.width,
    set: (column, width) => {
      const { [column.name]: _, ...others } = widths.value;
      const bounded = width === null ? null : Math.round(Math.min(WIDEST, Math.max(NARROWEST, width)));
      widths.value = bounded === null ? others : { ...others, [column.name]: bounded };
      remember("widths", widths.value);
    },
    version: chosen,
  };
}

interface Props {
  readonly columns: readonly Column[];
  readonly shown: Shown;
  readonly change: (part: Partial<Shown>) => void;
  readonly widths: Widths;
  readonly selectAll: () => void;
  /** Which rows are selected. */
  readonly selected: "none" | "some" | "all";
}

export function Head({ columns, shown, change, widths, selectAll, selected }: Props): JSX.Element {
  const [dragged, setDragged] = useState<string | null>(null);
  const [over, setOver] = useState<string | null>(null);
  const names = shown.columns;

  function sortOf(column: Column): "ascending" | "descending" | "none" {
    if (shown.sort === column.name) return "ascending";
    return shown.sort === `-${column.name}` ? "descending" : "none";
  }

  function entries(column: Column, place: number): (MenuItem | null)[] {
    const { name } = column;
    if (column.kind === "curve") return [{ label: "Remove the curve", run: () => change({ curve: "" }) }];
    const before = names[place - 1];
    const after = names[place + 1];
    return [
      { label: "Sort ascending", checked: shown.sort === name, run: () => change({ sort: name }) },
      { label: "Sort descending", checked: shown.sort === `-${name}`, run: () => change({ sort: `-${name}` }) },
      null,
      shown.group === name
        ? { label: "Do not group", run: () => change({ group: "" }) }
        : { label: "Group by this", run: () => change({ group: name }) },
      null,
      ...(before ? [{ label: "Move left", run: () => change({ columns: moved(names, name, before) }) }] : []),
      ...(after ? [{ label: "Move right", run: () => change({ columns: moved(names, after, name) }) }] : []),
      { label: "Usual width", run: () => widths.set(column, null) },
      ...(names.length > 1
        ? [{ label: "Remove the column", run: () => change({ columns: names.filter((one) => one !== name) }) }]
        : []),
    ];
  }

  function resize(event: PointerEvent, column: Column): void {
    const grip = event.currentTarget as HTMLElement;
    const [start, before] = [event.clientX, widths.of(column)];
    event.preventDefault();
    grip.setPointerCapture(event.pointerId);
    grip.onpointermove = (move) => widths.set(column, before + move.clientX - start);
    grip.onlostpointercapture = () => (grip.onpointermove = null);
  }

  return (
    <div class={css["head"]} role="row" aria-rowindex={1}>
      <div role="columnheader" aria-colindex={1} class={css["check"]}>
        <input
          type="checkbox"
          aria-label={selected === "none" ? "Select all runs that match" : "Select none"}
          checked={selected === "all"}
          indeterminate={selected === "some"}
          onChange={selectAll}
        />
      </div>
      {columns.map((column, place) => {
        const sort = sortOf(column);
        const isCurve = column.name.startsWith(CURVE);
        return (
          <div
            key={column.name}
            role="columnheader"
            aria-colindex={place + 2}
            aria-sort={sort}
            class={`${css["headCell"]} ${place === 0 ? css["first"] : ""}`}
            data-right={isRight(column.kind) ? "" : undefined}
            data-over={over === column.name && dragged !== column.name ? "" : undefined}
            draggable={!isCurve}
            onDragStart={() => setDragged(column.name)}
            onDragOver={(event) => {
              if (!dragged || isCurve) return;
              event.preventDefault();
              setOver(column.name);
            }}
            onDragEnd={() => {
              setDragged(null);
              setOver(null);
            }}
            onDrop={(event) => {
              event.preventDefault();
              if (dragged) change({ columns: moved(names, dragged, column.name) });
            }}
          >
            <button
              type="button"
              class={css["sort"]}
              title={isCurve ? column.title : `${column.title} ${column.note}: sort by this`}
              disabled={isCurve}
              onClick={() => change({ sort: nextSort(shown.sort, column.name, isTextual(column.kind)) })}
            >
              {column.title} {column.note && <small>{column.note}</small>}{" "}
              {sort !== "none" && <span aria-hidden="true">{sort === "ascending" ? "↑" : "↓"}</span>}
            </button>
            <Menu
              items={entries(column, place)}
              class={css["headMenu"] ?? ""}
              label={`Column ${column.title} ${column.note}`.trim()}
            >
              ▾
            </Menu>
            <span
              class={css["grip"]}
              aria-hidden="true"
              onPointerDown={(event) => resize(event, column)}
              onDblClick={() => widths.set(column, null)}
              onDragStart={(event) => event.preventDefault()}
            />
          </div>
        );
      })}
    </div>
  );
}
