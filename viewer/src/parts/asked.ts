/** A question to the server whose answer a component shows. */

import { useCallback, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Asked<T> {
  /** The last answer. While a new one is on its way, it stays, so that nothing flickers. */
  readonly value: T | null;
  readonly error: Error | null;
  readonly waiting: boolean;
  /** Ask once more, such as after a change. */
  readonly again: () => void;
}

/**
 * Ask whenever `key` changes. An older question is given up: its answer never replaces a newer one's.
 *
 * `key` is text that says what is asked; null asks nothing. If `fresh` is true, an answer to another key is not kept.
 */
export function useAsked<T>(
  key: string | null,
  ask: (signal: AbortSignal) => Promise<T>,
  { fresh = false }: { fresh?: boolean } = {},
): Asked<T> {
  const [state, setState] = useState<{ key: string | null; value: T | null; error: Error | null; waiting: boolean }>({
    key: null,
    value: null,
    error: null,
    waiting: key !== null,
  });
  const [turn, setTurn] = useState(0);
  const latest = useRef(ask);
  latest.current = ask;
  // Asked at once, not after the next frame: a page asks several questions, one after the other's answer.
  useLayoutEffect(() => {
    if (key === null) {
      setState({ key, value: null, error: null, waiting: false });
      return;
    }
    const stop = new AbortController();
    setState((before) => (before.waiting ? before : { ...before, waiting: true }));
    latest.current(stop.signal).then(
      (value) => stop.signal.aborted || setState({ key, value, error: null, waiting: false }),
      (error: unknown) =>
        stop.signal.aborted ||
        setState((before) => ({ key, value: before.key === key ? before.value : null, error: asError(error), waiting: false })),
    );
    return () => stop.abort();
  }, [key, turn]);
  const again = useCallback(() => setTurn((before) => before + 1), []);
  const stale = fresh && state.key !== key;
  return { value: stale ? null : state.value, error: stale ? null : state.error, waiting: state.waiting || stale, again };
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
