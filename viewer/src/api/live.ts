/**
 * Follows what changes: one event stream for all that a page shows.
 *
 * Parts of a page say what they follow by `follow`. The stream is opened anew, from where it was, whenever that changes.
 * It is closed while the page is hidden, and goes on from the same place when the page is seen again.
 */

import { signal } from "@preact/signals";

import { dataAddress } from "./client";

/** Points, samples (plots, images) or log lines that came, a task's new status, or "read anew". */
export type Change =
  | { event: "status"; task: string; name: string; project: string; status: string; last_iteration?: number }
  | { event: "scalars"; task: string; series: [metric: string, variant: string, from: number, to: number][] | null }
  | { event: "samples"; task: string; series: [string, string, number, number, string][] | null }
  | { event: "log"; task: string; count: number }
  | { event: "reset"; task: string | null }
  | { event: "gone"; task: string };

export interface Followed {
  readonly tasks?: readonly string[];
  readonly projects?: readonly string[];
}

/** "off": nothing is followed. "paused": the page is hidden. "lost": the server does not answer at the moment. */
export const connection = signal<"off" | "connecting" | "live" | "paused" | "lost">("off");

const EVENTS = ["status", "scalars", "samples", "log", "reset", "gone"] as const;
/** The server takes so many tasks in one stream, and addresses of some 60 KB. */
const MOST_TASKS = 1000;

const followers = new Map<Followed, (change: Change) => void>();
let stream: EventSource | null = null;
let followed = "";
let cursor: string | null = null;
let reopening: ReturnType<typeof setTimeout> | undefined;

/** Call `changed` for each change of the tasks and projects, until the returned function is called. */
export function follow(what: Followed, changed: (change: Change) => void): () => void {
  followers.set(what, changed);
  reopenSoon();
  return () => {
    followers.delete(what);
    reopenSoon();
  };
}

document.addEventListener("visibilitychange", reopenSoon);

/** A page's parts come and go together: wait for all of them. */
function reopenSoon(): void {
  clearTimeout(reopening);
  reopening = setTimeout(reopen, 50);
}

function reopen(): void {
  const all = [...followers.keys()];
  const tasks = [...new Set(all.flatMap((one) => one.tasks ?? []))].slice(0, MOST_TASKS);
  const projects = [...new Set(all.flatMap((one) => one.projects ?? []))];
  const wanted = tasks.length || projects.length ? dataAddress("/data/live", { task: tasks, project: projects }) : "";
  if (!wanted || document.hidden) {
    close();
    connection.value = wanted ? "paused" : "off";
    if (!wanted) cursor = null;
    followed = "";
    return;
  }
  if (wanted === followed && stream) return;
  close();
  followed = wanted;
  open(cursor === null ? wanted : `${wanted}&since=${encodeURIComponent(cursor)}`);
}

function open(address: string): void {
  connection.value = "connecting";
  const opened = new EventSource(address);
  stream = opened;
  opened.onopen = () => (connection.value = "live");
  opened.onerror = () => {
    connection.value = "lost";
    if (opened.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    followed = "";
    clearTimeout(reopening);
    reopening = setTimeout(reopen, 3000);
  };
  for (const name of EVENTS) opened.addEventListener(name, (event) => heard(name, event as MessageEvent<string>));
  opened.addEventListener("end", () => close());
}

function heard(name: (typeof EVENTS)[number], event: MessageEvent<string>): void {
  if (event.lastEventId) cursor = event.lastEventId;
  const change = { event: name, ...(JSON.parse(event.data) as object) } as Change;
  for (const [what, changed] of [...followers]) if (concerns(what, change)) changed(change);
}

function concerns(what: Followed, change: Change): boolean {
  return change.task === null || !what.tasks || what.tasks.includes(change.task) || Boolean(what.projects?.length);
}

function close(): void {
  stream?.close();
  stream = null;
}
