/** What may be done with a run in its status, and why not. Pure: the server decides in the end. */

import { statusText } from "../../table/columns";

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

interface State {
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
      return status === "in_progress" || status === "queued" ? null : "It does not run";
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
      return status === "created" || isArchived(run) ? null : "Only drafts and archived runs are deleted: archive it first";
  }
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
