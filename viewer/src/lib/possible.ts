/** What may be done with runs in their status, and why not. Pure: the server decides in the end. */

import { statusText } from "./status";
import { counted } from "./times";

export type ActionName =
  | "clone"
  | "enqueue"
  | "dequeue"
  | "abort"
  | "reset"
  | "publish"
  | "move"
  | "archive"
  | "restore"
  | "delete";

/** What decides about a run. */
export interface State {
  readonly status: string;
  readonly system_tags?: readonly string[];
}

const QUEUED_FROM = new Set(["created", "stopped", "failed"]);
const PUBLISHED_FROM = new Set(["stopped", "closed", "failed", "completed"]);
const LOCKED = new Set(["published", "publishing"]);

export function isArchived(run: State): boolean {
  return run.system_tags?.includes("archived") ?? false;
}

/** Why an action is not possible with a run now; null if it is. */
export function whyNot(action: ActionName, run: State): string | null {
  const { status } = run;
  switch (action) {
    case "clone":
    case "move":
      return null;
    case "enqueue":
      if (QUEUED_FROM.has(status)) return null;
      if (status === "queued") return "It waits in a queue already";
      return `${sentence(status)}: ${whyNot("reset", run) ? "" : "reset it, or "}clone it and enqueue the clone`;
    case "dequeue":
      return status === "queued" ? null : "It does not wait in a queue";
    case "abort":
      return isActive(run) ? null : "It does not run";
    case "reset":
      if (status === "created") return "It has not begun";
      if (LOCKED.has(status)) return "It is published: clone it instead";
      return status === "in_progress" ? "It runs: abort it first" : null;
    case "publish":
      if (LOCKED.has(status)) return "It is published already";
      return PUBLISHED_FROM.has(status) ? null : "It has not ended";
    case "archive":
      return isArchived(run) ? "It is archived already" : null;
    case "restore":
      return isArchived(run) ? null : "It is not archived";
    case "delete":
      return status === "created" || isArchived(run)
        ? null
        : "Only drafts and archived runs are deleted: archive it first";
  }
}

/** What an action needs: said when some of many runs are left out. */
const NEEDS: Readonly<Partial<Record<ActionName, string>>> = {
  enqueue: "Only drafts and runs that failed or were aborted can be enqueued: clone the others.",
  abort: "Only runs that are running or queued can be aborted.",
  archive: "They are archived already.",
  restore: "They are not archived.",
  delete: "Only drafts and archived runs can be deleted: archive the others first.",
};

/** The runs for which an action is possible now, and the others. */
export function split<T extends State>(
  action: ActionName,
  runs: readonly T[],
): { can: readonly T[]; others: readonly T[] } {
  return {
    can: runs.filter((run) => whyNot(action, run) === null),
    others: runs.filter((run) => whyNot(action, run) !== null),
  };
}

/** "Left out: 3 runs (2 running, 1 completed). Only …": how many an action leaves out and why. "" for none. */
export function leftOut(action: ActionName, others: readonly State[]): string {
  if (!others.length) return "";
  const counts = new Map<string, number>();
  for (const { status } of others) counts.set(status, (counts.get(status) ?? 0) + 1);
  const statuses = [...counts]
    .toSorted((a, b) => b[1] - a[1])
    .map(([status, count]) => `${counted(count)} ${statusText(status)}`);
  return `Left out: ${runsText(others.length)} (${statuses.join(", ")}). ${NEEDS[action] ?? ""}`;
}

/** Whether an agent or a script has the run: archiving ends that. */
export function isActive({ status }: State): boolean {
  return status === "in_progress" || status === "queued";
}

/** "3 runs", "1 run". */
export function runsText(count: number): string {
  return `${counted(count)} ${count === 1 ? "run" : "runs"}`;
}

/** Why parameters can't be changed; null if they can. */
export function whyNotEdited(run: State): string | null {
  if (run.status === "created") return null;
  return LOCKED.has(run.status)
    ? "The run is published: its parameters can't change. Clone it to change them."
    : "The run has begun: its parameters say what it ran with. Clone or reset it to change them.";
}

const SENTENCES: Readonly<Record<string, string>> = {
  in_progress: "It runs",
  completed: "It has ended",
  closed: "It has ended",
  published: "It is published",
  publishing: "It is being published",
};

function sentence(status: string): string {
  return SENTENCES[status] ?? `It is ${statusText(status)}`;
}
