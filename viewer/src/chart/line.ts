/** What a chart draws: lines with a name, a colour and a band. */

import type { Points } from "./align";

/** A colour for light pages and one for dark ones. */
export type Colour = readonly [light: string, dark: string];

/** How a line looks. `key` is the same for the same thing at all times, such as a run's id and the series. */
export interface Look {
  readonly key: string;
  readonly name: string;
  readonly colour: Colour;
  readonly dashed?: boolean;
}

/** A line, and the band between its least and greatest values. `faint` is drawn behind: what was smoothed. */
export interface Line extends Look {
  readonly metric: string;
  readonly variant: string;
  readonly task: string | null;
  readonly points: Points;
  readonly faint?: Points | null;
  /** A wider band behind all: between the least and the greatest of a group's runs. */
  readonly outer?: Points | null;
}

/**
 * Told apart by most eyes, also by those that don't see red or green, on white and on black. The first half has a colour of
 * each kind; the second half repeats the kinds: ochre is much like orange.
 */
export const PALETTE: readonly Colour[] = [
  ["#1f6fd6", "#6ea8ff"],
  ["#d9730d", "#ffa657"],
  ["#14866d", "#3fd0b0"],
  ["#c2364f", "#ff7f8f"],
  ["#7c4fc4", "#b99bff"],
  ["#0b86a8", "#56c8ec"],
  ["#8f6413", "#d6b15e"],
  ["#bb3f95", "#f48acb"],
  ["#56801c", "#a6d15a"],
  ["#5f6b7c", "#aab4c4"],
];

const HALF = PALETTE.length / 2;

/**
 * A colour for each name, and whether its line is dashed. A name has the same colour wherever it can: it starts from a
 * number that is made of the name, and takes the next colour that is free. The first five names share the first half of
 * the palette. After ten names, lines are dashed.
 */
export function looks(names: Iterable<string>): ReadonlyMap<string, { colour: Colour; dashed: boolean }> {
  const result = new Map<string, { colour: Colour; dashed: boolean }>();
  const taken = new Set<number>();
  for (const name of names) {
    if (result.has(name)) continue;
    const turn = Math.floor(result.size / PALETTE.length);
    if (result.size % PALETTE.length === 0) taken.clear();
    const half = taken.size < HALF ? 0 : HALF;
    let slot = hash(name) % HALF;
    while (taken.has(half + slot)) slot = (slot + 1) % HALF;
    taken.add(half + slot);
    result.set(name, { colour: PALETTE[half + slot]!, dashed: turn % 2 === 1 });
  }
  return result;
}

/** FNV-1a of the text, 32 bits. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193);
  return (value ^ (value >>> 15)) >>> 0;
}
