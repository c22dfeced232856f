/** A question to the server whose answer a component shows. */

import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { whenBack } from "../api/live";

export interface Asked<T> {
  /** The last answer. While a new one is on its way, it stays, so that nothing flickers. */
  readonly value: T | null;
  readonly error: Error | null;
  readonly waiting: boolean;
  /** Ask once more, such as after a change. A question that is on its way is given up. */
  readonly again: () => void;
  /** Ask once more, but let a question that is on its way be answered first: for changes that come at any rate. */
  readonly refresh: () => void;
}

/**
 * Ask whenever `key` changes, and when the server is back after it was lost. An older question is given up: its answer
 * never replaces a newer one's.
 *
 * `key` is text that says what is asked; null asks nothing. If `fresh` is true, an answer to another key is not kept.
 * `version` grows when what is asked about has changed: then it is asked once more, as by `refresh`.
 */
export function useAsked<T>(
  key: string | null,
  ask: (signal: AbortSignal) => Promise<T>,
  { fresh = false, version = 0 }: { fresh?: boolean; version?: number } = {},
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
  /** Whether a question is on its way, and whether another one is to follow it. */
  const now = useRef({ asking: false, more: false });
  const again = useCallback(() => setTurn((before) => before + 1), []);
  // Asked at once, not after the next frame: a page asks several questions, one after the other's answer.
  useLayoutEffect(() => {
    now.current = { asking: key !== null, more: false };
    if (key === null) {
      setState({ key, value: null, error: null, waiting: false });
      return;
    }
    const stop = new AbortController();
    const answered = (): boolean => {
      if (stop.signal.aborted) return false;
      const { more } = now.current;
      now.current = { asking: false, more: false };
      if (more) again();
      return true;
    };
    setState((before) => (before.waiting ? before : { ...before, waiting: true }));
    latest.current(stop.signal).then(
      (value) => answered() && setState({ key, value, error: null, waiting: false }),
      (error: unknown) =>
        answered() &&
        setState((before) => ({
          key,
          value: before.key === key ? before.value : null,
          error: asError(error),
          waiting: false,
        })),
    );
    return () => stop.abort();
  }, [key, turn, again]);
  const refresh = useCallback(() => {
    if (now.current.asking) now.current.more = true;
    else again();
  }, [again]);
  // Over a connection that is dead, no answer comes any more. Over any other, it may be on its way for long.
  const isAsked = key !== null;
  useEffect(
    () => (isAsked ? whenBack((wasAway) => (wasAway ? again() : refresh())) : undefined),
    [isAsked, again, refresh],
  );
  const seen = useRef({ key, version });
  useLayoutEffect(() => {
    const before = seen.current;
    seen.current = { key, version };
    if (before.key === key && before.version !== version) refresh();
  }, [key, version, refresh]);
  const stale = fresh && state.key !== key;
  return {
    value: stale ? null : state.value,
    error: stale ? null : state.error,
    waiting: state.waiting || stale,
    again,
    refresh,
  };
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
