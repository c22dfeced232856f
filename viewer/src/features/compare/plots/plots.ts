/** Geometry of parallel coordinates and of a scatter: which axes, and what is near the pointer. Pure. */

import { type Column, differs, mainMetric } from "../runs";
import { isWide } from "../scales";

/** So many parameters are axes, unless somebody chooses. */
const MOST_AXES = 7;

/** Whether an axis is logarithmic: as the address says, or else if it is wide. */
export function isLog(column: Column, log: readonly string[], linear: readonly string[]): boolean {
  if (!column.numbers) return false;
  return log.includes(column.name) || (isWide(column) && !linear.includes(column.name));
}

/** The parameters that differ and the main metric, which comes last. */
export function usualAxes(columns: ReadonlyMap<string, Column>): Column[] {
  const all = [...columns.values()];
  const parameters = all.filter((one) => one.kind === "parameter" && differs(one) && !isAllDifferent(one));
  const main = mainMetric(all);
  return [...parameters.slice(0, MOST_AXES), ...(main ? [main] : [])];
}

/** Whether no two runs have the same text there, as with names of output folders: such an axis tells nothing. */
function isAllDifferent(column: Column): boolean {
  return !column.numbers && column.values.length > 2 && new Set(column.values).size === column.values.length;
}

/**
 * The row of the line that is nearest to a point, and not farther than `reach` pixels above or below it; −1 if none is.
 *
 * `lines` has for each row the y of each axis; `axes` has the x of each axis, ascending.
 */
export function nearestLine(
  lines: readonly (readonly number[])[],
  axes: readonly number[],
  rows: Iterable<number>,
  [x, y]: readonly [number, number],
  reach: number,
): number {
  const right = axes.findIndex((at) => at >= x);
  if (right < 0 || axes.length < 2) return -1;
  const to = Math.max(1, right);
  const part = (x - axes[to - 1]!) / (axes[to]! - axes[to - 1]!);
  let [best, distance] = [-1, reach];
  for (const row of rows) {
    const line = lines[row]!;
    const away = Math.abs(line[to - 1]! * (1 - part) + line[to]! * part - y);
    if (away < distance) [best, distance] = [row, away];
  }
  return best;
}

/** The row of the point that is nearest; −1 if none is within `reach` pixels. Rows without a place have null. */
export function nearestPoint(
  points: readonly (readonly [number, number] | null)[],
  rows: Iterable<number>,
  [x, y]: readonly [number, number],
  reach: number,
): number {
  let [best, distance] = [-1, reach * reach];
  for (const row of rows) {
    const point = points[row];
    if (!point) continue;
    const away = (point[0] - x) ** 2 + (point[1] - y) ** 2;
    if (away < distance) [best, distance] = [row, away];
  }
  return best;
}
