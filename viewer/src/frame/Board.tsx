/**
 * A part of a page with figures in it: one frame lies behind all of it, and draws each figure where the page has a hole.
 *
 * So the page's own headings, sliders and buttons stay outside of the frame, and scroll with the figures. What contains
 * a hole must have no background.
 */

import { useSignalEffect } from "@preact/signals";
import { type ComponentChildren, createContext, type JSX } from "preact";
import { useContext, useEffect, useRef } from "preact/hooks";

import { dark } from "../state/session";
import css from "./Board.module.css";
import { FigureFrame, type Progress } from "./host";
import type { Box, Colours } from "./messages";

class Holes {
  frame: FigureFrame | null = null;
  private readonly holes = new Map<number, { element: HTMLElement; box: Box }>();
  private readonly resized = new ResizeObserver(() => this.measureSoon());
  private element: HTMLElement | null = null;
  private last = 0;
  private asked = 0;

  open(element: HTMLElement, layer: HTMLElement): void {
    this.element = element;
    this.frame = new FigureFrame(layer, colours());
    this.resized.observe(element);
  }

  close(): void {
    this.frame?.close();
    this.resized.disconnect();
    cancelAnimationFrame(this.asked);
    this.frame = this.element = null;
  }

  draw(
    element: HTMLElement,
    text: string,
    images: ReadonlyMap<string, Blob>,
    told: (progress: Progress) => void,
  ): number {
    const id = ++this.last;
    const box = this.boxOf(element);
    this.holes.set(id, { element, box });
    // What changes above a hole moves it, and changes the size of something that contains both.
    for (let one: Element | null = element; one && one !== this.element; one = one.parentElement)
      this.resized.observe(one);
    this.frame?.draw(id, text, images, box, (progress) => {
      this.measureSoon(); // drawing takes long, and the page may have moved meanwhile
      told(progress);
    });
    return id;
  }

  remove(id: number): void {
    const hole = this.holes.get(id);
    if (hole) this.resized.unobserve(hole.element);
    this.holes.delete(id);
    this.frame?.remove(id);
    this.measureSoon();
  }

  measureSoon(): void {
    cancelAnimationFrame(this.asked);
    this.asked = requestAnimationFrame(() => this.measure());
  }

  private measure(): void {
    const moved: [number, Box][] = [];
    for (const [id, hole] of this.holes) {
      const box = this.boxOf(hole.element);
      if (!box.width || JSON.stringify(box) === JSON.stringify(hole.box)) continue;
      hole.box = box;
      moved.push([id, box]);
    }
    if (moved.length) this.frame?.move(moved);
  }

  private boxOf(element: HTMLElement): Box {
    const here = element.getBoundingClientRect();
    const all = this.element?.getBoundingClientRect() ?? here;
    const whole = Math.round;
    return {
      left: whole(here.left - all.left),
      top: whole(here.top - all.top),
      width: whole(here.width),
      height: whole(here.height),
    };
  }
}

const TheHoles = createContext<Holes | null>(null);

/** The board that a component is on. */
export function useHoles(): Holes | null {
  return useContext(TheHoles);
}

export function Board({ children }: { children: ComponentChildren }): JSX.Element {
  const element = useRef<HTMLDivElement>(null);
  const layer = useRef<HTMLDivElement>(null);
  const holes = useRef<Holes | null>(null);
  holes.current ??= new Holes();
  useEffect(() => {
    const board = holes.current!;
    board.open(element.current!, layer.current!);
    return () => board.close();
  }, []);
  useEffect(() => holes.current?.measureSoon());
  useSignalEffect(() => {
    void dark.value;
    holes.current?.frame?.dress(colours());
  });
  return (
    <div ref={element} class={css["board"]}>
      <div ref={layer} class={css["layer"]} />
      <div class={css["content"]}>
        <TheHoles.Provider value={holes.current}>{children}</TheHoles.Provider>
      </div>
    </div>
  );
}

/** The colours of the page now. */
function colours(): Colours {
  const style = getComputedStyle(document.documentElement);
  const [page = "", text = "", soft = "", line = ""] = ["page", "text", "soft", "line"].map((name) =>
    style.getPropertyValue(`--${name}`).trim(),
  );
  return { dark: dark.value, page, text, soft, line };
}
