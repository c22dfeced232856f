/** Does one thing to many runs, a few hundred at once, and says which failed and why. */

import { api, ServerError } from "../api/client";
import { say } from "../parts/Toast";
import { wordsOf } from "../parts/Notice";
import { counted } from "../parts/times";

/** Runs that a comparison can have. */
export const MOST_COMPARED = 1000;
const AT_ONCE = 200;
const REASONS = 3;

interface Answer {
  readonly succeeded?: readonly { id: string }[];
  readonly failed?: readonly { id: string; error: { msg: string } }[];
}

/** "3 runs", "1 run". */
export function runsText(count: number): string {
  return `${counted(count)} ${count === 1 ? "run" : "runs"}`;
}

/**
 * Call an endpoint that takes `ids`. `did`: what was done, such as "Archived". `progress` is told how many are done.
 *
 * Single runs may fail, such as published ones that are to be deleted: the first reasons are said.
 */
export async function doToMany(
  endpoint: string,
  ids: readonly string[],
  more: object,
  did: string,
  progress: (done: number) => void = () => undefined,
): Promise<void> {
  let done = 0;
  const reasons = new Map<string, number>();
  try {
    for (let first = 0; first < ids.length; first += AT_ONCE) {
      const some = ids.slice(first, first + AT_ONCE);
      const { succeeded, failed = [] } = await api<Answer>(endpoint, { ids: some, ...more });
      done += succeeded ? succeeded.length : some.length - failed.length;
      for (const { error } of failed) reasons.set(error.msg, (reasons.get(error.msg) ?? 0) + 1);
      progress(first + some.length);
    }
  } catch (error) {
    const words = wordsOf(error instanceof Error ? error : new ServerError(0, String(error)));
    say(`${did} ${runsText(done)} of ${counted(ids.length)}. ${words}`, { bad: true });
    return;
  }
  if (!reasons.size) {
    say(`${did} ${runsText(done)}`);
    return;
  }
  const said = [...reasons].toSorted((a, b) => b[1] - a[1]).map(([reason, count]) => `${runsText(count)}: ${reason}`);
  const left = said.length > REASONS ? ` And ${said.length - REASONS} other reasons.` : "";
  say(`${did} ${runsText(done)}. Not done for ${said.slice(0, REASONS).join("; ")}.${left}`, { bad: true });
}
