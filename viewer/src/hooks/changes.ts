/** What a component does when something has changed that changes at any rate. */

import { useEffect, useMemo, useRef } from "preact/hooks";

import { paced } from "./paced";

/** Call `run` at a bounded rate after `value` has become another one than the component was shown with at first. */
export function useChanges(value: unknown, run: () => void, pause: number): void {
  const before = useRef(value);
  const changed = useMemo(() => paced(run, pause), [run, pause]);
  useEffect(() => {
    if (value === before.current) return;
    before.current = value;
    changed();
  }, [value, changed]);
  useEffect(() => changed.stop, [changed]);
}
