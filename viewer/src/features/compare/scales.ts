/** Where a value lies on an axis, from 0 (its beginning) to 1 (its end). Pure. */

import { short } from "../../lib/times";
import { type Column, compareValues, type Value } from "./runs";

export type ScaleKind = "linear" | "log" | "text";

export interface Scale {
  readonly kind: ScaleKind;
  /** null if the value has no place: it is missing, or not above 0 on a log axis. */
  place(value: Value): number | null;
  /** The number at a place; on an axis of texts, the number of the text from 0, with a fraction. */
  at(place: number): number;
  readonly ticks: readonly { readonly at: number; readonly label: string }[];
  /** The texts of an axis of texts, in order. */
  readonly texts: readonly string[];
}

/** Above this ratio between the greatest and the least, an axis is logarithmic unless somebody says otherwise. */
const WIDE = 80;
/** So many ticks fit. If there are no more different values, each is one. */
const TICKS = 6;
const MOST_TEXTS = 20;

/** Whether an axis is better read with a log scale: learning rates from 1e-5 to 0.1 are. */
export function isWide(column: Column): boolean {
  if (!column.numbers || column.kind !== "parameter") return false;
  const [least, greatest] = extent(column.values);
  return least > 0 && greatest / least >= WIDE;
}

export function scaleOf(column: Column, log: boolean): Scale {
  if (!column.numbers) return ofTexts(column.values);
  const [least, greatest] = extent(column.values, log);
  const scale = log && least > 0 ? ofLogs(least, greatest) : ofNumbers(least, greatest);
  const different = [...new Set(column.values)].filter((value) => typeof value === "number");
  if (different.length < 2 || different.length > TICKS) return scale;
  const ticks = different.map((value) => ({ at: scale.place(value)!, label: short(value) }));
  return { ...scale, ticks: ticks.filter(({ at }) => at !== null) };
}

/** The least and the greatest number; of the positive ones, if `positive`. Infinity and −Infinity if there are none. */
function extent(values: readonly Value[], positive = false): readonly [least: number, greatest: number] {
  let [least, greatest] = [Infinity, -Infinity];
  for (const value of values) {
    if (typeof value !== "number" || (positive && value <= 0)) continue;
    least = Math.min(least, value);
    greatest = Math.max(greatest, value);
  }
  return [least, greatest];
}

function ofNumbers(least: number, greatest: number): Scale {
  if (!(least <= greatest)) [least, greatest] = [0, 1];
  if (least === greatest)
    [least, greatest] = [least - (Math.abs(least) || 1) / 2, greatest + (Math.abs(greatest) || 1) / 2];
  const width = greatest - least;
  const place = (value: Value): number | null => (typeof value === "number" ? (value - least) / width : null);
  const ticks = roundNumbers(least, greatest).map((value) => ({ at: place(value)!, label: short(value) }));
  return { kind: "linear", place, at: (part) => least + part * width, ticks, texts: [] };
}

function ofLogs(least: number, greatest: number): Scale {
  if (least === greatest) [least, greatest] = [least / 2, greatest * 2];
  const [low, high] = [Math.log10(least), Math.log10(greatest)];
  const place = (value: Value): number | null =>
    typeof value === "number" && value > 0 ? (Math.log10(value) - low) / (high - low) : null;
  const at = (part: number): number => 10 ** (low + part * (high - low));
  const step = Math.max(1, Math.ceil((high - low) / TICKS));
  const powers: number[] = [];
  for (let power = Math.ceil(low - 1e-9); power <= high + 1e-9; power += step) powers.push(Number(`1e${power}`));
  const values = powers.length >= 2 ? powers : [least, greatest];
  return {
    kind: "log",
    place,
    at,
    ticks: values.map((value) => ({ at: place(value)!, label: short(value) })),
    texts: [],
  };
}

function ofTexts(values: readonly Value[]): Scale {
  const texts = [...new Set(values.filter((value) => value !== null).map(String))].sort(compareValues);
  const places = new Map(texts.map((text, n) => [text, texts.length === 1 ? 0.5 : n / (texts.length - 1)]));
  const step = Math.ceil(texts.length / MOST_TEXTS);
  const ticks = texts.filter((_, n) => n % step === 0).map((label) => ({ at: places.get(label)!, label }));
  return {
    kind: "text",
    place: (value) => (value === null ? null : (places.get(String(value)) ?? null)),
    at: (part) => part * Math.max(1, texts.length - 1),
    ticks,
    texts,
  };
}

/** Some round numbers within a range: 0.13 to 0.92 → 0.2, 0.4, 0.6, 0.8. */
function roundNumbers(least: number, greatest: number): number[] {
  const rough = (greatest - least) / TICKS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10);
  const first = Math.ceil(least / step - 1e-9);
  const last = Math.floor(greatest / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, n) => Number(((first + n) * step).toPrecision(12)));
}
