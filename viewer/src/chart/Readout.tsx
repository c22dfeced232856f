/** The table of values under the crosshair, the line that is nearest to the pointer first. */

import type { ReadonlySignal } from "@preact/signals";
import type { JSX } from "preact";

import { counted, short } from "../lib/times";
import { dark } from "../state/session";
import { hasBand, nearest } from "./align";
import type { Line } from "./line";
import css from "./Readout.module.css";
import { type AxisKind, placeInWords } from "./ticks";

/** Where the pointer is in a chart: `x` as a value, `left` and `top` in pixels of the area of the lines. */
export interface Hover {
  readonly x: number;
  readonly left: number;
  readonly top: number;
  readonly lines: readonly Line[];
  readonly toX: (value: number) => number;
  readonly toY: (value: number) => number;
  /** The area of the lines within the chart. */
  readonly offsetLeft: number;
  readonly offsetTop: number;
  readonly width: number;
  readonly height: number;
}

const MOST_ROWS = 10;
/** In charts that are not wider, the table stands at the edge: beside the pointer, it would leave the page. */
const NARROW = 340;

interface Row {
  readonly line: Line;
  readonly at: number;
  readonly distance: number;
}

export function Readout({ hover, kind }: { hover: ReadonlySignal<Hover | null>; kind: AxisKind }): JSX.Element | null {
  const now = hover.value;
  if (!now) return null;
  const rows = rowsOf(now);
  const [first] = rows;
  if (!first) return null;
  const shown = rows.slice(0, MOST_ROWS);
  const shade = dark.value ? 1 : 0;
  const onTheRight = now.left > now.width / 2;
  const beside = onTheRight
    ? { right: `${now.width - now.left + 14}px` }
    : { left: `${now.offsetLeft + now.left + 14}px` };
  const side = now.width > NARROW ? beside : onTheRight ? { left: "0" } : { right: "0" };
  return (
    <>
      {shown.map(({ line, at }) => (
        <i
          key={line.key}
          class={css["dot"]}
          style={{
            left: `${now.offsetLeft + now.toX(line.points.x[at]!)}px`,
            top: `${now.offsetTop + now.toY(line.points.mean[at]!)}px`,
            background: line.colour[shade],
          }}
        />
      ))}
      <div
        class={css["readout"]}
        style={{ ...side, top: `${Math.min(now.height - 30, Math.max(0, now.top - 20))}px` }}
        role="status"
      >
        <div class={css["place"]}>{placeInWords(first.line.points.x[first.at]!, kind)}</div>
        <table>
          <tbody>
            {shown.map(({ line, at }) => (
              <tr key={line.key}>
                <td class={css["swatch"]}>
                  <i style={{ background: line.colour[shade] }} />
                </td>
                <td class={css["name"]}>{line.name}</td>
                <td class={css["value"]}>{short(line.points.mean[at]!)}</td>
                <td class={css["range"]}>{rangeOf(line, at)}</td>
              </tr>
            ))}
          </tbody>
        </table>
        {rows.length > shown.length && <div class={css["place"]}>and {rows.length - shown.length} more</div>}
      </div>
    </>
  );
}

function rowsOf({ lines, x, top, toY }: Hover): Row[] {
  const rows: Row[] = [];
  for (const line of lines) {
    const at = nearest(line.points.x, x);
    if (at < 0) continue;
    const value = line.points.mean[at]!;
    rows.push({ line, at, distance: Number.isFinite(value) ? Math.abs(toY(value) - top) : Infinity });
  }
  return rows.sort((one, other) => one.distance - other.distance);
}

/** "0.1 … 9 of 750" where a bucket has several points. */
function rangeOf(line: Line, at: number): string {
  const points = line.faint ?? line.points;
  const here = line.faint ? nearest(points.x, line.points.x[at]!) : at;
  if (here < 0 || !hasBand(points)) return "";
  const count = points.count?.[here] ?? 0;
  if (count === 1) return line.faint ? `raw ${short(points.mean[here]!)}` : "";
  const range = `${brief(points.min[here]!)} … ${brief(points.max[here]!)}`;
  return count ? `${range} of ${counted(count)}` : range;
}

function brief(value: number): string {
  return short(Number.isFinite(value) ? Number(value.toPrecision(4)) : value);
}
