/** Canvases that are drawn in pixels of the page, sharp on every screen. */

import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";

/** A context for drawing in pixels of the page on an emptied canvas of this size; null if the browser has none to give. */
export function emptied(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/** A canvas of this size that is drawn anew, at most once a frame, whenever `draw` is another function. */
export function useDrawing(
  width: number,
  height: number,
  draw: (context: CanvasRenderingContext2D) => void,
): RefObject<HTMLCanvasElement | null> {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const element = canvas.current; // it may have left the page before the frame comes
    if (!element || !width) return undefined;
    const frame = requestAnimationFrame(() => {
      const context = emptied(element, width, height);
      if (context) draw(context);
    });
    return () => cancelAnimationFrame(frame);
  }, [width, height, draw]);
  return canvas;
}
