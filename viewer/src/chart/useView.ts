/** The view of a run's charts: it is in the address, and pins are remembered for the project. */

import { useComputed } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";

import { adjust, query } from "../state/address";
import { remember, remembered } from "../state/session";
import type { Axis } from "./source";
import { parametersOf, type View, viewOf } from "./view";

/** `pins`: under which name pins are remembered. `usual`: the axis if the address names none. */
export function useView(
  pins: string,
  usual: Axis = "iter",
): readonly [View, (change: Partial<View>, push: boolean) => void] {
  const text = useComputed(() => query.value.toString());
  const view = useMemo(() => viewOf(new URLSearchParams(text.value), usual), [text.value, usual]);
  useEffect(() => {
    const kept = remembered<string[]>(pins, []);
    if (!query.peek().has("pin") && kept.length) adjust({ pin: kept });
  }, [pins]);
  function change(part: Partial<View>, push: boolean): void {
    const { at } = view; // with a moment to mark, the usual axis is time: any other is named
    adjust(parametersOf(part.axis ? { at, ...part } : part, usual), { push });
    if (part.pins) remember(pins, part.pins.length ? part.pins : undefined);
  }
  return [view, change];
}
