/** Chooses an iteration: a slider, arrows to the one before and after, and a way back to the newest. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { counted } from "../lib/times";
import css from "./IterationSlider.module.css";

interface Props {
  /** What the iterations are of, for screen readers. */
  readonly name: string;
  readonly least: number;
  readonly greatest: number;
  /** The iteration that is shown. */
  readonly at: number;
  /** Whether the newest is shown, whichever that is. */
  readonly newest: boolean;
  /** null: the newest. */
  readonly onChoose: (iteration: number | null) => void;
  /** To the iteration before (-1) or after (1). */
  readonly onStep: (step: -1 | 1) => void;
}

export function IterationSlider({ name, least, greatest, at, newest, onChoose, onStep }: Props): JSX.Element {
  const [dragged, setDragged] = useState<number | null>(null);
  function onKeyDown(event: KeyboardEvent): void {
    const step = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 }[event.key] as -1 | 1 | undefined;
    if (!step) return;
    event.preventDefault();
    onStep(step);
  }
  return (
    <div class={css["slider"]} role="group" aria-label={`Iteration of ${name}`}>
      <button type="button" aria-label="Iteration before" disabled={at <= least} onClick={() => onStep(-1)}>
        ‹
      </button>
      <input
        type="range"
        aria-label={`Iteration of ${name}`}
        min={least}
        max={greatest}
        value={dragged ?? at}
        onKeyDown={onKeyDown}
        onInput={(event) => {
          setDragged(Number(event.currentTarget.value));
          onChoose(Number(event.currentTarget.value));
        }}
        onChange={() => setDragged(null)}
      />
      <button type="button" aria-label="Iteration after" disabled={at >= greatest} onClick={() => onStep(1)}>
        ›
      </button>
      <output class={css["at"]}>{counted(dragged ?? at)}</output>
      <button type="button" class={css["newest"]} aria-pressed={newest} onClick={() => onChoose(null)}>
        Newest
      </button>
    </div>
  );
}
