/** Edits of a thing that a page shows, such as a run or a model. */

import { useEffect, useRef, useState } from "preact/hooks";

import { attempt } from "../state/toasts";
import type { Asked } from "./asked";

/** New values of some of the fields `K`. */
type Edit<T, K extends keyof T> = Partial<Pick<T, K>>;

/**
 * The thing as it is shown, and how its fields `K` are changed. Edits show at once, and go back if the server refuses.
 *
 * They are sent one after another: two requests at once could be answered in any order, so that of two edits of one
 * field the earlier one could stay. An edit answers whether the server took it. An edit that is no new value of a whole
 * field, such as one more tag, says how it is sent.
 */
export function useEdits<T extends object, K extends keyof T>(
  asked: Asked<T>,
  save: (fields: Edit<T, K>) => Promise<unknown>,
): [T | null, (fields: Edit<T, K>, send?: () => Promise<unknown>) => Promise<boolean>] {
  const [edits, setEdits] = useState<readonly Edit<T, K>[]>([]);
  /** Edits that the server has not answered: what it said before does not know of them. */
  const saving = useRef(new Set<Edit<T, K>>());
  const last = useRef<Promise<unknown>>(Promise.resolve());
  useEffect(() => {
    setEdits((before) => before.filter((one) => saving.current.has(one)));
  }, [asked.value]);
  async function edit(fields: Edit<T, K>, send = () => save(fields)): Promise<boolean> {
    saving.current.add(fields);
    setEdits((before) => [...before, fields]);
    const saved = last.current.then(() => attempt(send));
    last.current = saved;
    const good = await saved;
    saving.current.delete(fields);
    if (good) asked.again();
    else setEdits((before) => before.filter((one) => one !== fields));
    return good;
  }
  return [asked.value && Object.assign({}, asked.value, ...edits), edit];
}
