/** Actions that take a while, such as a question to the server. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

/**
 * Whether an action is under way, and how to begin one: `once` does nothing while another one is, so that a double click
 * does a thing once.
 */
export function useOnce(): readonly [busy: boolean, once: (action: () => Promise<unknown>) => Promise<void>] {
  const [busy, setBusy] = useState(false);
  const running = useRef(false);
  async function once(action: () => Promise<unknown>): Promise<void> {
    if (running.current) return;
    running.current = true;
    setBusy(true);
    try {
      await action();
    } finally {
      running.current = false;
      setBusy(false);
    }
  }
  return [busy, once];
}

/** Tells whether the component is still shown: when an action is done, its user may have gone on to something else. */
export function useShown(): () => boolean {
  const shown = useRef(true);
  useEffect(() => () => void (shown.current = false), []);
  return useCallback(() => shown.current, []);
}
