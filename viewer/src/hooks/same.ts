/** A value that is made anew at each drawing, such as a list out of the address: for what happens when it changes. */

import { useRef } from "preact/hooks";

/** The value that was there first, for as long as later ones say the same. */
export function useSame<T>(value: T): T {
  const text = JSON.stringify(value);
  const kept = useRef({ value, text });
  if (text !== kept.current.text) kept.current = { value, text };
  return kept.current.value;
}
