/**
 * Brushes: ranges on axes that choose runs. Pure.
 *
 * A brush is in the address as JSON: `["hyperparams.Args/lr",0.001,0.1]`, or with texts `["hyperparams.Args/opt",["sgd"]]`.
 */

import type { Column, Value } from "./runs";
import type { Scale } from "./scales";

export type Brush =
  | { readonly column: string; readonly from: number; readonly to: number }
  | { readonly column: string; readonly texts: readonly string[] };

export function brushText(brush: Brush): string {
  return JSON.stringify("texts" in brush ? [brush.column, brush.texts] : [brush.column, brush.from, brush.to]);
}

/** The brush of a text; null if it is none. */
export function brushOf(text: string): Brush | null {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(read) || typeof read[0] !== "string") return null;
  const [column, from, to] = read as [string, unknown, unknown];
  if (Array.isArray(from) && from.every((one) => typeof one === "string")) return { column, texts: from as string[] };
  return typeof from === "number" && typeof to === "number" ? { column, from, to } : null;
}

/** The brush between two places of an axis, in any order. On an axis of texts, it holds the texts between them. */
export function brushBetween(column: string, scale: Scale, one: number, other: number): Brush {
  const [low, high] = [Math.min(one, other), Math.max(one, other)];
  if (scale.kind === "text") {
    const texts = scale.texts.filter((text) => scale.place(text)! >= low && scale.place(text)! <= high);
    return { column, texts };
  }
  const [from, to] = [scale.at(low), scale.at(high)];
  const width = scale.at(1) - scale.at(0);
  const stepOf = (value: number): number => 10 ** Math.floor(Math.log10(scale.kind === "log" ? value : width) - 3);
  return { column, from: outwards(from, -stepOf(from)), to: outwards(to, stepOf(to)) };
}

/** The multiple of `step` that is next to `value`, above it if `step` is positive: nothing falls off a brush's ends. */
function outwards(value: number, step: number): number {
  const size = Math.abs(step);
  const round = step > 0 ? Math.ceil(value / size) : Math.floor(value / size);
  return Number((round * size).toPrecision(12));
}

/** Where a brush lies on its axis; null if it holds nothing there. */
export function placeOfBrush(brush: Brush, scale: Scale): readonly [from: number, to: number] | null {
  const places =
    "texts" in brush
      ? brush.texts.map((text) => scale.place(text)).filter((place) => place !== null)
      : [scale.place(brush.from) ?? 0, scale.place(brush.to) ?? 1];
  if (!places.length) return null;
  const onAxis = places.map((place) => Math.min(1, Math.max(0, place)));
  return [Math.min(...onAxis), Math.max(...onAxis)];
}

export function passes(brush: Brush, value: Value): boolean {
  if (value === null) return false;
  if ("texts" in brush) return brush.texts.includes(String(value));
  return typeof value === "number" && value >= brush.from && value <= brush.to;
}

/** For each row whether all brushes let it through. A brush of a column that is not there lets everything through. */
export function chosenRows(rows: number, columns: ReadonlyMap<string, Column>, brushes: readonly Brush[]): boolean[] {
  const known = brushes.flatMap((brush) => {
    const column = columns.get(brush.column);
    return column ? [{ brush, column }] : [];
  });
  return Array.from({ length: rows }, (_, row) =>
    known.every(({ brush, column }) => passes(brush, column.values[row]!)),
  );
}

/** The brushes with that of one column replaced, or taken away if `brush` is null. */
export function withBrush(brushes: readonly Brush[], column: string, brush: Brush | null): Brush[] {
  const others = brushes.filter((one) => one.column !== column);
  return brush ? [...others, brush] : others;
}
