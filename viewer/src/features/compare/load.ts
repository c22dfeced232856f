/** Asks for the runs of a comparison, and keeps them as they are now. */

import { useEffect, useState } from "preact/hooks";

import { api, data } from "../../api/client";
import type { TaskEx } from "../../api/endpoints";
import { follow } from "../../api/live";
import type { FieldOf, Part } from "../../api/questions";
import { useAsked } from "../../hooks/asked";
import { ALL } from "../../routes";
import { FIELDS, type Run } from "./runs";

/** So many runs are compared at most. */
export const MOST_RUNS = 1000;
/** So many are asked for in one request: their parameters may be long. */
const AT_ONCE = 250;
/** Changes of so many milliseconds are read together. */
const PAUSE = 700;

export interface Loaded {
  readonly runs: readonly Run[] | null;
  readonly error: Error | null;
  readonly again: () => void;
}

/** The runs of these ids, or if there are none, those of a project that a filter lets through. */
export function useRuns(project: string, ids: readonly string[], where: string | null): Loaded {
  const byFilter = ids.length === 0 && where !== null;
  const matches = useAsked(byFilter ? `${project} ${where}` : null, (signal) => matching(project, where!, signal));
  const tasks = byFilter ? matches.value : ids.slice(0, MOST_RUNS);
  const asked = useAsked(tasks?.join() ?? null, (signal) => tasksOf(tasks!, FIELDS, signal));
  const runs = useCurrent(asked.value);
  // There is no stream of all projects together: a filter over them finds new runs when the page is loaded anew.
  const follows = byFilter && project !== ALL;
  const { refresh } = matches;
  useEffect(() => (follows ? onNewRuns(project, refresh) : undefined), [project, follows, refresh]);
  return { runs, error: matches.error ?? asked.error, again: matches.error ? matches.again : asked.again };
}

/** The tasks of these ids in their order, with these fields. Those that are gone are left out. */
export async function tasksOf<F extends FieldOf<TaskEx>>(
  ids: readonly string[],
  fields: readonly F[],
  signal?: AbortSignal,
): Promise<Part<TaskEx, F>[]> {
  const parts = Array.from({ length: Math.ceil(ids.length / AT_ONCE) }, (_, n) =>
    ids.slice(n * AT_ONCE, (n + 1) * AT_ONCE),
  );
  const answers = await Promise.all(
    parts.map((id) => api("tasks.get_all_ex", { id, only_fields: fields, search_hidden: true }, signal)),
  );
  const found = new Map(answers.flatMap(({ tasks }) => tasks.map((task) => [task.id, task])));
  return ids.map((id) => found.get(id)).filter((task) => task !== undefined);
}

async function matching(project: string, where: string, signal: AbortSignal): Promise<string[]> {
  const path = `/data/projects/${encodeURIComponent(project)}/tasks.json`;
  const query = { columns: "id", where, recursive: 1, sort: "-created", limit: MOST_RUNS };
  const rows = await data<{ id: string }[]>(path, query, signal);
  return rows.map((row) => row.id);
}

/** The runs, each replaced by what the server says of it when it changes. */
function useCurrent(loaded: readonly Run[] | null): readonly Run[] | null {
  const [state, setState] = useState({ loaded, runs: loaded });
  useEffect(() => {
    setState({ loaded, runs: loaded });
    return loaded?.length ? onChanges(loaded, (runs) => setState({ loaded, runs })) : undefined;
  }, [loaded]);
  return state.loaded === loaded ? state.runs : loaded;
}

function onChanges(loaded: readonly Run[], show: (runs: readonly Run[]) => void): () => void {
  const known = new Map(loaded.map((run) => [run.id, run]));
  const waiting = new Set<string>();
  const told = new Set<string>();
  const stop = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;

  async function read(): Promise<void> {
    const ids = [...waiting];
    waiting.clear();
    try {
      for (const run of await tasksOf(ids, FIELDS, stop.signal)) known.set(run.id, run);
      if (!stop.signal.aborted) show(loaded.map((run) => known.get(run.id) ?? run));
    } catch {
      // What changed next is read then; the connection's state says whether the server answers.
    }
    timer = undefined;
    if (waiting.size && !stop.signal.aborted) timer = setTimeout(read, PAUSE);
  }

  const end = follow({ tasks: [...known.keys()] }, (change) => {
    if (change.event === "log" || change.event === "samples") return;
    for (const id of change.task === null ? known.keys() : [change.task]) {
      const run = known.get(id);
      if (!run || (change.event === "status" && isFirst(run, change))) continue;
      waiting.add(id);
    }
    if (waiting.size) timer ??= setTimeout(read, PAUSE);
  });

  /** A stream begins with the status of every task: that is no change. */
  function isFirst(run: Run, change: { status: string; last_iteration?: number }): boolean {
    const first = !told.has(run.id);
    told.add(run.id);
    return first && run.status === change.status && (run.last_iteration ?? 0) === (change.last_iteration ?? 0);
  }

  return () => {
    end();
    clearTimeout(timer);
    stop.abort();
  };
}

/** Calls `changed` when runs of a project come or change their status, at most every other second. */
function onNewRuns(project: string, changed: () => void): () => void {
  const known = new Map<string, string>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = follow({ projects: [project] }, (change) => {
    if (change.event !== "status") return;
    const before = known.get(change.task);
    known.set(change.task, change.status);
    if (before === change.status) return;
    timer ??= setTimeout(() => {
      timer = undefined;
      changed();
    }, 2000);
  });
  return () => {
    end();
    clearTimeout(timer);
  };
}
