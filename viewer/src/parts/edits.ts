/** Edits of a thing that a page shows, such as a run or a model. */

import { useEffect, useRef, useState } from "preact/hooks";

import type { Asked } from "./asked";
import { attempt } from "./Toast";

/**
 * The thing as it is shown, and how its fields are changed. Edits show at once, and go back if the server refuses.
 *
 * They are sent one after another: two requests at once could be answered in any order, so that of two edits of one
 * field the earlier one could stay. An edit answers whether the server took it.
 */
export function useEdits<T extends object>(
  asked: Asked<T>,
  save: (fields: Partial<T>) => Promise<unknown>,
): [T | null, (fields: Partial<T>) => Promise<boolean>] {
  const [edited, setEdited] = useState<Partial<T>>({});
  /** Edits that the server has not answered: what it said before does not know of them. */
  const saving = useRef(0);
  const last = useRef<Promise<unknown>>(Promise.resolve());
  useEffect(() => {
    if (!saving.current) setEdited({});
  }, [asked.value]);
  async function edit(fields: Partial<T>): Promise<boolean> {
    setEdited((before) => ({ ...before, ...fields }));
    saving.current++;
    const saved = last.current.then(() => attempt(() => save(fields)));
    last.current = saved;
    const good = await saved;
    saving.current--;
    if (good) asked.again();
    else setEdited({});
    return good;
  }
  return [asked.value && { ...asked.value, ...edited }, edit];
}
