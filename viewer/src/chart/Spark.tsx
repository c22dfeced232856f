/** A small curve without axes: how a number went, at a glance. It is as sharp as the screen, and follows the theme. */

import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

import { emptied } from "../hooks/canvas";
import { dark } from "../state/session";

export interface Points {
  readonly x: ArrayLike<number>;
  readonly y: ArrayLike<number>;
}

interface Props {
  readonly points: Points | undefined;
  readonly width: number;
  readonly height: number;
  /** What it shows, for screen readers. */
  readonly label: string;
}

export function Spark({ points, width, height, label }: Props): JSX.Element {
  const element = useRef<HTMLCanvasElement>(null);
  const isDark = dark.value;
  useLayoutEffect(() => {
    if (element.current && points) draw(element.current, points, width, height);
  }, [points, width, height, isDark]);
  if (!points) return <span />;
  return <canvas ref={element} role="img" aria-label={label} style={{ width: `${width}px`, height: `${height}px` }} />;
}

function draw(canvas: HTMLCanvasElement, { x, y }: Points, width: number, height: number): void {
  const context = emptied(canvas, width, height);
  if (!context) return;
  context.strokeStyle = getComputedStyle(canvas).getPropertyValue("--accent") || "#2563eb";
  context.lineWidth = 1.25;
  context.lineJoin = "round";
  context.beginPath();
  let started = false;
  for (const [px, py] of pixelsOf(x, y, width, height)) {
    if (started) context.lineTo(px, py);
    else context.moveTo(px, py);
    started = true;
  }
  context.stroke();
}

/** Where the points lie in a picture of so many pixels, with a margin of 2. Points that are not finite are left out. */
export function pixelsOf(
  x: ArrayLike<number>,
  y: ArrayLike<number>,
  width: number,
  height: number,
): [number, number][] {
  let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
  const kept: [number, number][] = [];
  for (let n = 0; n < x.length; n++) {
    const [one, value] = [x[n] ?? NaN, y[n] ?? NaN];
    if (!Number.isFinite(one) || !Number.isFinite(value)) continue;
    kept.push([one, value]);
    left = Math.min(left, one);
    right = Math.max(right, one);
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  const across = right > left ? (width - 4) / (right - left) : 0;
  const up = high > low ? (height - 4) / (high - low) : 0;
  const middle = up ? 0 : height / 2 - 2;
  return kept.map(([one, value]) => [2 + (one - left) * across, height - 2 - middle - (value - low) * up]);
}
