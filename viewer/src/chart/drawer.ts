/**
 * What draws a chart: axes and crosshair by uPlot, lines and bands by `draw.ts`. Only this module touches uPlot.
 */

import "uplot/dist/uPlot.min.css";

import { effect } from "@preact/signals";
import uPlot from "uplot";

import { dark } from "../state/session";
import { extentOfX, extentOfY, extentWithoutOutliers, firstFrom, nearest, type Range, roomy } from "./align";
import { drawLines } from "./draw";
import type { Line } from "./line";
import type { End } from "./locate";
import { type Axes, optionsOf, type Paint } from "./options";
import type { Plane } from "./paths";
import type { Hover } from "./Readout";
import type { Split } from "./svg";
import type { Together } from "./sync";

/** What is shown, and who is told what a user does. */
export interface Shown {
  /** The same for the same chart; it tells a shared crosshair where the pointer is. */
  readonly id: string;
  readonly lines: readonly Line[];
  /** Leave the outermost values out of the range of y. */
  readonly trimmed?: boolean;
  /** What is shown of x; null: all. */
  readonly range: Range | null;
  /** At first: the chart follows the size of its place. */
  readonly width: number;
  readonly height: number;
  readonly together: Together;
  /** x of a moment to mark. */
  readonly mark?: number | null;
  /** The user wants to see a range, or all again. `push`: it is done, and can be gone back from. */
  readonly onZoom: (range: Range | null, push: boolean) => void;
  /** The user picks a point. */
  readonly onPick?: (picked: Picked) => void;
}

export interface Picked {
  readonly line: Line;
  readonly at: number;
  /** Which of the numbers there is nearest to where the user clicked. */
  readonly end: End;
  /** Where it is in the window, in pixels. */
  readonly left: number;
  readonly top: number;
}

/** What is drawn at the moment. */
export interface Drawn {
  readonly canvas: HTMLCanvasElement;
  readonly plane: () => Plane;
  /** The marks of the axes. */
  readonly splits: () => { readonly x: readonly Split[]; readonly y: readonly Split[] };
}

/** A line that is nearer to the pointer than so many pixels stands out. */
const NEAR = 8;
/** A click means the nearest point within so many pixels to the left and to the right. */
const HIT = 6;
/** How much closer one step of the wheel, or of the key +, comes. */
const CLOSER = 0.8;

/** Milliseconds that the hint about the wheel is shown, and how often since the page was opened. */
const HINT = 1500;
const MOST_HINTS = 3;
let hints = 0;

/** Owns a uPlot, and everything that listens to its element. */
export class Drawer implements Drawn {
  private readonly plot: uPlot;
  private readonly ends: (() => void)[] = [];
  private readonly pointers = new Map<number, PointerEvent>();
  private paint: Paint = { grid: "", text: "", dark: false };
  private dragged = false;
  private focus: string | null = null;
  private frame = 0;
  private width: number;
  /** What is drawn. */
  private drawn: Shown | null = null;

  constructor(
    private readonly place: HTMLElement,
    private readonly axes: Axes,
    private readonly shown: () => Shown,
    private readonly hover: { value: Hover | null },
    private readonly hint: { value: boolean },
  ) {
    this.width = shown().width;
    this.readPaint();
    const options = optionsOf(this.size(), axes, () => this.paint);
    options.hooks = {
      draw: [() => this.drawLines()],
      setSelect: [() => this.selected()],
      setCursor: [() => this.pointed()],
    };
    let begin: (() => void) | undefined;
    this.plot = new uPlot(
      options,
      [
        [0, 1],
        [null, null],
      ],
      (made, init) => {
        place.append(made.root);
        begin = init as () => void;
      },
    );
    this.update(begin);
    this.listen();
  }

  get canvas(): HTMLCanvasElement {
    return this.plot.ctx.canvas;
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    for (const end of this.ends) end();
    const { cursor } = this.shown().together;
    if (cursor.peek()?.chart === this.shown().id) cursor.value = null;
    this.hover.value = null;
    this.plot.destroy();
  }

  /**
   * Draw what is to be shown now. uPlot draws at the end of a batch, and again for what it was told outside of one:
   * so all is told in one batch, also at the beginning (`begin`).
   */
  update(begin?: () => void): void {
    const shown = this.shown();
    if (shown === this.drawn) return;
    this.drawn = shown;
    this.plot.batch(() => {
      begin?.();
      this.resize();
      this.rescale();
    });
    if (this.hover.value) this.pointed();
  }

  private resize(): void {
    const { width, height } = this.size();
    if (width !== this.plot.width || height !== this.plot.height) this.plot.setSize({ width, height });
  }

  plane(): Plane {
    const { left, top, width, height } = this.plot.bbox;
    const { x, y } = this.plot.scales;
    return {
      x: { min: x!.min!, max: x!.max!, start: left, size: width, log: this.axes.logX },
      y: { min: y!.min!, max: y!.max!, start: top + height, size: -height, log: this.axes.logY },
    };
  }

  splits(): { x: Split[]; y: Split[] } {
    const [x, y] = this.plot.axes.map((axis) => {
      const { _splits: values = [], _values: texts = [] } = axis as { _splits?: number[]; _values?: string[] };
      return values.map((value, at): Split => [value, texts[at] ?? ""]).filter(([, text]) => text);
    });
    return { x: x ?? [], y: y ?? [] };
  }

  /** Arrows move the crosshair, with Shift the range; + and − zoom; 0 and Escape show all; Enter picks. */
  key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { together, id, onZoom } = this.shown();
    const [from, to] = this.range();
    const at = together.cursor.peek()?.x ?? (from + to) / 2;
    const side = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (side && event.shiftKey) onZoom(this.moved(side * 0.1), false);
    else if (side) together.cursor.value = { x: this.neighbour(at, side), chart: id };
    else if (event.key === "+" || event.key === "=") onZoom(this.zoomed(CLOSER, at), false);
    else if (event.key === "-") onZoom(this.zoomed(1 / CLOSER, at), false);
    else if (event.key === "0" || event.key === "Escape") onZoom(null, true);
    else if (event.key === "Enter") this.pick();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  private listen(): void {
    const { over } = this.plot;
    const on = <K extends keyof HTMLElementEventMap>(name: K, does: (event: HTMLElementEventMap[K]) => void): void => {
      over.addEventListener(name, does, { passive: false });
      this.ends.push(() => over.removeEventListener(name, does));
    };
    on("wheel", (event) => this.wheel(event));
    on("dblclick", () => this.shown().onZoom(null, true));
    on("mousedown", () => (this.dragged = false));
    on("click", () => this.dragged || this.pick());
    on("pointerdown", (event) => event.pointerType === "touch" && this.pointers.set(event.pointerId, event));
    on("pointermove", (event) => this.pinch(event));
    for (const name of ["pointerup", "pointercancel"] as const)
      on(name, (event) => this.pointers.delete(event.pointerId));

    const observer = new ResizeObserver(([entry]) => {
      this.width = Math.round(entry!.contentRect.width);
      cancelAnimationFrame(this.frame);
      this.frame = requestAnimationFrame(() => this.resize());
    });
    observer.observe(this.place);
    this.ends.push(() => observer.disconnect());
    this.ends.push(
      dark.subscribe((now) => {
        if (now === this.paint.dark) return;
        this.readPaint();
        this.plot.redraw(false);
      }),
    );
    this.ends.push(effect(() => this.follow(this.shown().together.cursor.value)));
  }

  private size(): { width: number; height: number } {
    return { width: Math.max(120, this.width), height: this.shown().height };
  }

  private readPaint(): void {
    const style = getComputedStyle(document.documentElement);
    this.paint = {
      grid: `${style.getPropertyValue("--line")}99`,
      text: style.getPropertyValue("--soft"),
      dark: dark.peek(),
    };
  }

  private rescale(): void {
    const { lines, range, trimmed = false } = this.shown();
    const { logX, logY } = this.axes;
    const all = lines.flatMap(({ points, faint, outer }) => [points, faint, outer].filter((one) => one != null));
    const x = wide(range ?? extentOfX(all, logX) ?? (logX ? [1, 10] : [0, 1]), logX);
    const y = (trimmed ? extentWithoutOutliers : extentOfY)(all, x, logY) ?? (logY ? [0.1, 10] : [0, 1]);
    const [low, high] = roomy(y, logY);
    this.plot.setScale("x", { min: x[0], max: x[1] });
    this.plot.setScale("y", { min: low, max: high });
  }

  private drawLines(): void {
    const { lines, mark = null } = this.shown();
    drawLines(this.plot.ctx, lines, {
      plane: this.plane(),
      pixels: devicePixelRatio,
      dark: this.paint.dark,
      focus: this.focus,
      mark,
      markColour: this.paint.text,
    });
  }

  // --- the crosshair ---

  /** The pointer moved here, or left. */
  private pointed(): void {
    const { left = -10, top = -10 } = this.plot.cursor;
    const { together, id } = this.shown();
    const mine = together.cursor.peek()?.chart === id;
    if (left < 0) {
      if (mine && this.plot.cursor.event) together.cursor.value = null;
      this.show(null);
      return;
    }
    const x = this.plot.posToVal(left, "x");
    if (this.plot.cursor.event) together.cursor.value = { x, chart: id };
    this.show(together.cursor.peek()?.chart === id ? { x, left, top } : null);
  }

  /** The crosshair is at an x, in this chart or in another one. */
  private follow(cursor: { x: number; chart: string } | null): void {
    const here = cursor !== null && cursor.chart === this.shown().id;
    if (here && this.plot.cursor.event && (this.plot.cursor.left ?? -1) >= 0) return;
    const left = cursor === null ? -10 : this.plot.valToPos(cursor.x, "x");
    const inside = left >= 0 && left <= this.plot.over.clientWidth;
    this.plot.setCursor({ left: inside ? left : -10, top: here ? this.plot.over.clientHeight / 2 : -10 }, here);
  }

  private show(place: { x: number; left: number; top: number } | null): void {
    const { lines } = this.shown();
    const { over } = this.plot;
    this.setFocus(place);
    if (!place) {
      this.hover.value = null;
      return;
    }
    const toY = (value: number): number => this.plot.valToPos(value, "y");
    this.hover.value = {
      ...place,
      lines,
      toX: (value) => this.plot.valToPos(value, "x"),
      toY,
      offsetLeft: over.offsetLeft,
      offsetTop: over.offsetTop,
      width: over.clientWidth,
      height: over.clientHeight,
    };
  }

  /** The line at the pointer stands out among the others. */
  private setFocus(place: { x: number; top: number } | null): void {
    const { lines } = this.shown();
    let focus: string | null = null;
    let distance = NEAR;
    if (place && lines.length > 1) {
      for (const { key, points } of lines) {
        const away = Math.abs(this.plot.valToPos(points.mean[nearest(points.x, place.x)] ?? NaN, "y") - place.top);
        if (away < distance) [focus, distance] = [key, away];
      }
    }
    if (focus === this.focus) return;
    this.focus = focus;
    this.plot.redraw(false, false);
  }

  /** The x of the next point of any line on a side of `x`. */
  private neighbour(x: number, side: number): number {
    let best = side * Infinity;
    for (const { points } of this.shown().lines) {
      const at = nearest(points.x, x);
      for (const near of [at - 1, at, at + 1]) {
        const value = points.x[near];
        if (value !== undefined && (value - x) * side > 0 && (value - best) * side < 0) best = value;
      }
    }
    const [from, to] = this.range();
    return Math.min(to, Math.max(from, best));
  }

  private pick(): void {
    const { onPick, lines } = this.shown();
    const hover = this.hover.value;
    if (!onPick || !hover) return;
    const { left, top } = this.plot.over.getBoundingClientRect();
    let best: Picked | null = null;
    let distance = Infinity;
    for (const line of lines) {
      const { x } = line.points;
      const first = firstFrom(x, this.plot.posToVal(hover.left - HIT, "x"));
      const last = firstFrom(x, this.plot.posToVal(hover.left + HIT, "x"));
      const some = last > first ? { first, last } : { first: nearest(x, hover.x), last: nearest(x, hover.x) + 1 };
      for (let at = Math.max(0, some.first); at < some.last; at++) {
        const aside = this.plot.valToPos(x[at]!, "x") - hover.left;
        for (const end of ["mean", "min", "max"] as const) {
          const away = Math.hypot(
            aside,
            this.plot.valToPos((line.faint ?? line.points)[end][at] ?? NaN, "y") - hover.top,
          );
          if (!(away < distance)) continue;
          distance = away;
          best = { line, at, end, left: left + hover.left, top: top + hover.top };
        }
      }
    }
    if (best) onPick(best);
  }

  // --- the range ---

  private range(): Range {
    const { min, max } = this.plot.scales["x"]!;
    return [min!, max!];
  }

  private selected(): void {
    const { left, width } = this.plot.select;
    if (width < 4) return;
    this.dragged = true;
    const range: Range = [this.plot.posToVal(left, "x"), this.plot.posToVal(left + width, "x")];
    this.plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.shown().onZoom(range, true);
  }

  /** The wheel zooms with Ctrl, ⌘ or Alt, or if the chart has the focus; else the page scrolls. */
  private wheel(event: WheelEvent): void {
    const meant = event.ctrlKey || event.metaKey || event.altKey || this.place.parentElement?.matches(":focus-within");
    if (event.deltaY === 0) return;
    if (!meant) return this.tellOfWheel();
    event.preventDefault();
    const at = this.plot.posToVal(event.clientX - this.plot.over.getBoundingClientRect().left, "x");
    this.shown().onZoom(this.zoomed(event.deltaY < 0 ? CLOSER : 1 / CLOSER, at), false);
  }

  /** Say which key zooms, for a moment. Who has read it a few times knows it. */
  private tellOfWheel(): void {
    if (this.hint.value || hints >= MOST_HINTS) return;
    hints += 1;
    this.hint.value = true;
    const timer = setTimeout(() => (this.hint.value = false), HINT);
    this.ends.push(() => clearTimeout(timer));
  }

  /** Two fingers: what was under each of them stays there. */
  private pinch(event: PointerEvent): void {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    this.pointers.set(event.pointerId, event);
    const other = [...this.pointers.values()].find((one) => one.pointerId !== event.pointerId);
    if (!other) return;
    const { left, width } = this.plot.over.getBoundingClientRect();
    const pixel = (one: PointerEvent): number => one.clientX - left;
    const [mine, its] = [this.plot.posToVal(pixel(before), "x"), this.plot.posToVal(pixel(other), "x")];
    const apart = pixel(event) - pixel(other);
    if (Math.abs(apart) < 20) return;
    const scale = (mine - its) / apart;
    const from = its - pixel(other) * scale;
    if (scale > 0) this.shown().onZoom(this.bounded([from, from + width * scale]), false);
  }

  private zoomed(factor: number, at: number): Range | null {
    const [from, to] = this.range();
    return this.bounded([at - (at - from) * factor, at + (to - at) * factor]);
  }

  private moved(part: number): Range | null {
    const [from, to] = this.range();
    const all = this.whole();
    const by = Math.max(all[0] - from, Math.min(all[1] - to, (to - from) * part));
    return this.bounded([from + by, to + by]);
  }

  /** A range within what there is; null if it is all. */
  private bounded([from, to]: Range): Range | null {
    const [least, greatest] = this.whole();
    if (from <= least && to >= greatest) return null;
    return [Math.max(from, least), Math.min(to, greatest)];
  }

  private whole(): Range {
    return wide(
      extentOfX(
        this.shown().lines.map((line) => line.points),
        this.axes.logX,
      ) ?? [0, 1],
      this.axes.logX,
    );
  }
}

/** A range that is not a single value. */
function wide([from, to]: Range, log: boolean): Range {
  if (from < to) return [from, to];
  return log ? [from / 2, from * 2] : [from - 1, from + 1];
}
