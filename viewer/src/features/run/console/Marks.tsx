/** A strip beside the scroll bar with a mark for each hit. A click goes there. */

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { emptied } from "../../../hooks/canvas";
import { dark } from "../../../state/session";
import css from "./Console.module.css";

interface Props {
  /** Rows with a hit, ascending. */
  readonly rows: readonly number[];
  readonly of: number;
  readonly current: number | null;
  /** How far the search got, from 0 to 1. */
  readonly searched: number;
  readonly onGo: (row: number) => void;
}

const WIDTH = 10;

export function Marks({ rows, of, current, searched, onGo }: Props): JSX.Element {
  const element = useRef<HTMLCanvasElement>(null);
  const isDark = dark.value;
  useEffect(() => {
    const canvas = element.current!;
    draw();
    const watch = new ResizeObserver(draw);
    watch.observe(canvas);
    return () => watch.disconnect();

    function draw(): void {
      const height = canvas.clientHeight;
      const pen = emptied(canvas, WIDTH, height);
      if (!pen || !height) return;
      const colours = getComputedStyle(canvas);
      pen.fillStyle = colours.getPropertyValue("--line");
      pen.fillRect(0, height * searched, WIDTH, height * (1 - searched));
      pen.fillStyle = colours.getPropertyValue("--warn");
      let last = -2;
      for (const row of rows) {
        const y = Math.floor((row / Math.max(1, of)) * (height - 2));
        if (y <= last) continue;
        pen.fillRect(1, y, WIDTH - 2, 2);
        last = y;
      }
      if (current !== null) {
        pen.fillStyle = colours.getPropertyValue("--accent");
        pen.fillRect(0, Math.floor((current / Math.max(1, of)) * (height - 3)), WIDTH, 3);
      }
    }
  }, [rows, rows.length, of, current, searched, isDark]);
  return (
    <canvas
      ref={element}
      class={css["marks"]}
      role="img"
      aria-label={`Where the ${rows.length} hits are`}
      onClick={(event) => onGo(Math.floor((event.offsetY / event.currentTarget.clientHeight) * of))}
    />
  );
}
