/** A text that somebody types, or a slider's, which is told when keys and hand rest. */

import { useCallback, useEffect, useReducer, useRef } from "preact/hooks";

/** Milliseconds after the last key. */
const PAUSE = 250;

interface Typed {
  /** What the field has. */
  readonly typed: string;
  /** To be called at each key. */
  readonly type: (typed: string) => void;
  /** Tell at once. */
  readonly tell: () => void;
}

/**
 * `text` is what the page has. If something else changes it, such as a link or the browser's way back, the field has it,
 * too. But a text that was told from here changes nothing when it comes back, because more may be typed by then.
 */
export function useTyped(text: string, told: (text: string) => void): Typed {
  const field = useRef({ typed: text, told: text, text }).current;
  const [, draw] = useReducer<number, void>((times) => times + 1, 0);
  const tellOf = useRef(told);
  tellOf.current = told;
  if (text !== field.text) {
    field.text = text;
    if (text !== field.told) field.typed = field.told = text;
  }
  const tell = useCallback(() => {
    if (field.typed !== field.told) tellOf.current((field.told = field.typed));
  }, [field]);
  useEffect(() => {
    const timer = setTimeout(tell, PAUSE);
    return () => clearTimeout(timer);
  }, [field.typed, tell]);
  function type(typed: string): void {
    field.typed = typed;
    draw();
  }
  return { typed: field.typed, type, tell };
}
