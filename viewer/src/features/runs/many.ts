/** Reads the runs that are chosen, and does one thing to many runs, some at a time. */

import { api, ServerError } from "../../api/client";
import { wordsOf } from "../../api/errors";
import { runsText, type State } from "../../lib/possible";
import { counted } from "../../lib/times";

/** Runs that a comparison can have. */
export const MOST_COMPARED = 1000;
/** Runs that are changed by one request: as many as the server looks up at once. */
const AT_ONCE = 100;
/** Runs that are read by one request. */
const MOST_READ = 10_000;

/** A chosen run: what says which one it is, and what may be done with it. */
export interface Chosen extends State {
  readonly id: string;
  readonly name: string;
}

/** How an action went. */
export interface Outcome {
  /** How many runs it was done to. */
  readonly done: number;
  /** The runs to which it was not done, and the server's reasons. */
  readonly failed: readonly { readonly id: string; readonly reason: string }[];
  /** The runs that were not tried, because a whole request failed, and what was wrong with it. */
  readonly untried: readonly string[];
  readonly problem: string | null;
}

/** What is answered to a change of runs: those that failed, or, if they are changed together, how many were. */
interface Answer {
  readonly failed?: readonly { readonly id: string; readonly error: { readonly msg: string } }[];
  readonly updated?: number;
}

/** The runs with these ids, in that order, but for those that are not there any more: one request for 10,000. */
export async function readChosen(ids: readonly string[], signal?: AbortSignal): Promise<Chosen[]> {
  const found = new Map<string, Chosen>();
  for (const some of parts(ids, MOST_READ)) {
    const only_fields = ["id", "name", "status", "system_tags"] as const;
    const body = { id: some, only_fields, search_hidden: true, page: 0, page_size: some.length };
    for (const run of (await api("tasks.get_all", body, signal)).tasks) found.set(run.id, run);
  }
  return ids.flatMap((id) => found.get(id) ?? []);
}

/** Do something to many runs, some at a time. `progress` is told how many were tried. */
export function doToMany(
  ids: readonly string[],
  act: (some: readonly string[]) => Promise<Answer>,
  progress: (tried: number) => void = () => undefined,
): Promise<Outcome> {
  return inParts(parts(ids, AT_ONCE), progress, act);
}

/** Clone runs, one after another, each as a child of its original. */
export function cloneMany(
  runs: readonly Chosen[],
  progress: (tried: number) => void = () => undefined,
): Promise<Outcome> {
  const names = new Map(runs.map(({ id, name }) => [id, name]));
  return inParts(parts([...names.keys()], 1), progress, async ([id = ""]) => {
    try {
      await api("tasks.clone", { task: id, new_task_name: `Clone of ${names.get(id)}`, new_task_parent: id });
    } catch (error) {
      if (!(error instanceof ServerError && error.status === 400)) throw error;
      return { failed: [{ id, error: { msg: error.message } }] }; // this run only: the others go on
    }
    return {};
  });
}

/** Do something to each part. The first request that fails as a whole ends it. */
async function inParts(
  all: readonly (readonly string[])[],
  progress: (tried: number) => void,
  act: (some: readonly string[]) => Promise<Answer>,
): Promise<Outcome> {
  const failed: { id: string; reason: string }[] = [];
  let tried = 0;
  for (const [n, some] of all.entries()) {
    try {
      for (const { id, error } of (await act(some)).failed ?? []) failed.push({ id, reason: error.msg });
    } catch (error) {
      const problem = wordsOf(error instanceof Error ? error : new Error(String(error)));
      return { done: tried - failed.length, failed, untried: all.slice(n).flat(), problem };
    }
    tried += some.length;
    progress(tried);
  }
  return { done: tried - failed.length, failed, untried: [], problem: null };
}

/** "Deleted 3 runs", or "Deleted 3 of 5 runs" if the others failed. */
export function outcomeText(did: string, { done, failed, untried }: Outcome): string {
  const all = done + failed.length + untried.length;
  return `${did} ${done === all ? runsText(done) : `${counted(done)} of ${runsText(all)}`}`;
}

function parts(ids: readonly string[], size: number): string[][] {
  return Array.from({ length: Math.ceil(ids.length / size) }, (_, n) => ids.slice(n * size, (n + 1) * size));
}
