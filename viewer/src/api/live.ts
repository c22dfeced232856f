/**
 * Follows what changes: one event stream for all that a page shows.
 *
 * Parts of a page say what they follow by `follow`. The stream is opened anew, from where it was, whenever that changes.
 * It is closed while the page is hidden, and goes on from the same place when the page is seen again.
 *
 * The connection is lost when the stream breaks or falls silent, or when a question finds no server. The server is looked
 * for until it answers: by the stream, or by a question on pages that follow nothing. Then `whenBack` tells all who had
 * asked.
 */

import { effect, signal } from "@preact/signals";

import { dataAddress, signedIn, statusOf, unreachable } from "./client";
import { pauseAfter, pauseAfterDoubts } from "./pauses";

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
/** Milliseconds in which the server begins a stream, or says why not. */
const PATIENCE = 20_000;
/** Milliseconds after which a stream without a word is lost: the server says something every 15 seconds. */
const SILENT = 40_000;
/** Milliseconds for which timers stand still only if the computer sleeps, and between two looks whether they did. */
const ASLEEP = 30_000;
const LOOK = 5000;
/** Milliseconds after which a connection that was lost again and again counts as a good one. */
const CALM = 60_000;

const followers = new Map<Followed, (change: Change) => void>();
const returns = new Set<(wasAway: boolean) => void>();
let stream: EventSource | null = null;
let followed = "";
let cursor: string | null = null;
let reopening: ReturnType<typeof setTimeout> | undefined;
let opening: ReturnType<typeof setTimeout> | undefined;
/** Whether the server was lost, and nobody was told yet that it is back. */
let isAway = false;
/** How often the server was looked for, since it was there for a while. */
let attempts = 0;
let foundAt = 0;
let heardAt = 0;
/** How often a question found no server, although it was there. */
let doubts = 0;

/** Call `changed` for each change of the tasks and projects, until the returned function is called. */
export function follow(what: Followed, changed: (change: Change) => void): () => void {
  followers.set(what, changed);
  reopenSoon();
  return () => {
    followers.delete(what);
    reopenSoon();
  };
}

/**
 * Call `listener` whenever the server is there again after it was lost, until the returned function is called. `wasAway`:
 * it was lost itself, and with it the questions that were on their way; else only some question did not find it.
 */
export function whenBack(listener: (wasAway: boolean) => void): () => void {
  const one = (wasAway: boolean): void => listener(wasAway);
  returns.add(one);
  return () => void returns.delete(one);
}

let looked = Date.now();
document.addEventListener("visibilitychange", () => {
  looked = Date.now(); // timers of hidden pages stand still, too
  reopenSoon();
});
addEventListener("online", () => isAway && reopenSoon());
setInterval(() => {
  const slept = Date.now() - looked > ASLEEP && !document.hidden;
  looked = Date.now();
  const isSilent = connection.value === "live" && looked - heardAt > SILENT;
  if (!slept && !isSilent) return;
  lose();
  reopenSoon();
}, LOOK);
effect(() => {
  if (unreachable.value) void doubt();
});

/** A page's parts come and go together: wait for all of them. */
function reopenSoon(): void {
  clearTimeout(reopening);
  reopening = setTimeout(reopen, 50);
}

function reopen(): void {
  const wanted = addressOfAll();
  if (!wanted) cursor = null;
  if (!wanted || document.hidden) {
    close();
    if (document.hidden) connection.value = wanted || isAway ? "paused" : "off";
    else if (isAway) void find();
    else connection.value = "off";
    return;
  }
  if (wanted === followed && stream) return;
  close();
  followed = wanted;
  open();
}

/** The address of a stream of all that is followed; nothing if nothing is. */
function addressOfAll(): string {
  const all = [...followers.keys()];
  const tasks = [...new Set(all.flatMap((one) => one.tasks ?? []))].slice(0, MOST_TASKS);
  const projects = [...new Set(all.flatMap((one) => one.projects ?? []))];
  return tasks.length || projects.length ? dataAddress("/data/live", { task: tasks, project: projects }) : "";
}

function open(): void {
  connection.value = isAway ? "lost" : "connecting";
  const opened = new EventSource(sinceLast());
  stream = opened;
  opening = setTimeout(lose, PATIENCE);
  opened.onopen = () => {
    clearTimeout(opening);
    heardAt = Date.now();
    found("live");
  };
  opened.onerror = () => {
    const isRefused = opened.readyState === EventSource.CLOSED;
    if (isRefused) void ended();
    else lose();
  };
  for (const name of EVENTS) opened.addEventListener(name, (event) => heard(name, event as MessageEvent<string>));
  opened.addEventListener("alive", () => (heardAt = Date.now()));
  opened.addEventListener("end", () => void ended());
}

function sinceLast(): string {
  return cursor === null ? followed : `${followed}&since=${encodeURIComponent(cursor)}`;
}

function heard(name: (typeof EVENTS)[number], event: MessageEvent<string>): void {
  heardAt = Date.now();
  if (event.lastEventId) cursor = event.lastEventId;
  tell({ event: name, ...(JSON.parse(event.data) as object) } as Change);
}

function tell(change: Change): void {
  for (const [what, changed] of [...followers]) if (concerns(what, change)) changed(change);
}

function concerns(what: Followed, change: Change): boolean {
  return change.task === null || !what.tasks || what.tasks.includes(change.task) || Boolean(what.projects?.length);
}

/** The server has ended the stream, or refused to begin it. Only the answer to a question says why. */
async function ended(): Promise<void> {
  const asked = sinceLast();
  close();
  const status = await statusOf(`${asked}&wait=0`);
  if (stream) return; // something else is followed by now
  if (status === 404) {
    connection.value = "off";
    for (const task of new URLSearchParams(asked.slice(asked.indexOf("?"))).getAll("task"))
      tell({ event: "gone", task });
  } else if (status === 400 && cursor !== null) {
    cursor = null; // it is none of this server: it may have other data now
    tell({ event: "reset", task: null });
    reopenSoon();
  } else if (status === 401) {
    connection.value = "off";
    signedIn.value = false;
  } else if (status >= 400 && status < 500 && status !== 429) {
    connection.value = "off";
  } else {
    lose();
  }
}

/** The server is lost: look for it in a while. */
function lose(): void {
  close();
  if (!isAway && Date.now() - foundAt > CALM) attempts = 0;
  isAway = true;
  connection.value = document.hidden ? "paused" : "lost";
  clearTimeout(reopening);
  reopening = setTimeout(reopen, pauseAfter(attempts++, Math.random()));
}

/** Look for the server on a page that follows nothing. */
async function find(): Promise<void> {
  connection.value = "lost";
  if ((await statusOf("/livez")) !== 200) lose();
  else if (!stream) found("off");
}

/** A question found no server. Without this look, a question that something always stops would seem to be an outage. */
async function doubt(): Promise<void> {
  if (isAway) return;
  if ((await statusOf("/livez")) !== 200) return lose();
  setTimeout(() => {
    if (document.hidden)
      isAway = true; // it is told when the page is seen
    else tellBack(false);
  }, pauseAfterDoubts(doubts++));
}

function found(state: "live" | "off"): void {
  connection.value = state;
  unreachable.value = false;
  if (!isAway) return;
  isAway = false;
  foundAt = Date.now();
  doubts = 0;
  tellBack(true);
}

function tellBack(wasAway: boolean): void {
  for (const listener of [...returns]) listener(wasAway);
}

function close(): void {
  clearTimeout(opening);
  stream?.close();
  stream = null;
  followed = "";
}
