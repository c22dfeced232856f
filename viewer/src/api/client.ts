/** Asks the server: the API by `api`, addresses of data by `data`. Only this module calls `fetch`. */

import { signal } from "@preact/signals";

import type { Answer, Body, Endpoint, Only } from "./questions";

/** An answer that is an error, in words; `status` 0 means that there was no answer. */
export class ServerError extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** ClearML's code of the error, such as 12 for a wrong field; 0 if there is none. */
    readonly subcode = 0,
    /** After how many seconds the server may be asked again, if it said so. */
    readonly retryAfter: number | null = null,
  ) {
    super(message);
    this.name = "ServerError";
  }
}

/** Whether the server knows who we are. It turns false when any question is answered 401. */
export const signedIn = signal(true);

/** Whether the last question found no server: there was no answer, or one of a proxy that says so. */
export const unreachable = signal(false);

/** Times that a question is asked again after 429 or 503, if the server says when. */
const MOST_RETRIES = 4;
/** Seconds that are waited for one answer's turn at most. */
const LONGEST_PAUSE = 10;

/** Call an endpoint of the API, such as `tasks.get_all`, and return the `data` of its answer. Throws ServerError. */
export async function api<E extends Endpoint, const B extends Body<E>>(
  endpoint: E,
  body: B & Only<B, Body<E>>,
  signal?: AbortSignal,
): Promise<Answer<E, B>> {
  const response = await ask(`/${endpoint}`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(body),
    ...(signal && { signal }),
  });
  return (await json<{ data: Answer<E, B> }>(response)).data;
}

/**
 * Call an endpoint as somebody else than the cookie says, by headers, and do not ask again while the server is busy: for
 * signing in. Throws ServerError.
 */
export async function apiOnce<E extends Endpoint, const B extends Body<E>>(
  endpoint: E,
  body: B & Only<B, Body<E>>,
  headers: Record<string, string> = {},
): Promise<Answer<E, B>> {
  const response = await fetched(`/${endpoint}`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json", ...headers },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw await errorOf(response);
  return (await json<{ data: Answer<E, B> }>(response)).data;
}

/** Values for the query of an address of data: a list is repeated, null and undefined are left out. */
export type Query = Readonly<Record<string, string | number | readonly string[] | null | undefined>>;

/** The address of data with a query: `dataAddress("/data/projects.json", {sort: "name"})`. */
export function dataAddress(path: string, query: Query = {}): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const one of value) parameters.append(name, String(one));
    else if (value !== null && value !== undefined) parameters.append(name, String(value));
  }
  const text = parameters.toString();
  return text ? `${path}?${text}` : path;
}

/** What an address of data answers as JSON. Throws ServerError. */
export async function data<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return json(await get(dataAddress(path, query), signal));
}

/** What an address of data answers as bytes. Throws ServerError. */
export async function bytes(path: string, query: Query = {}, signal?: AbortSignal): Promise<ArrayBuffer> {
  return (await get(dataAddress(path, query), signal)).arrayBuffer();
}

/** The answer of an address of data. Throws ServerError. */
export function get(address: string, signal?: AbortSignal): Promise<Response> {
  return ask(address, signal ? { signal } : {});
}

/** A stored file, by an address of data that leads to it. Throws ServerError. */
export function file(address: string, signal?: AbortSignal): Promise<Response> {
  return ask(address, { redirect: "follow", ...(signal && { signal }) });
}

/** Post JSON to an address of data. Throws ServerError. */
export async function post<T>(path: string, body: unknown): Promise<T> {
  const headers = { "content-type": "application/json", accept: "application/json" };
  return json(await ask(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

/** What an answer says, of the type that its address has: the server is trusted to answer as it describes. */
async function json<T>(response: Response): Promise<T> {
  return (await response.json()) as T;
}

/** The status with which an address is answered, without asking again; 0 if there is no answer for so many seconds. */
export async function statusOf(address: string, seconds = 10): Promise<number> {
  try {
    const response = await fetched(address, {
      headers: { accept: "application/json" },
      signal: AbortSignal.timeout(seconds * 1000),
    });
    void response.body?.cancel();
    return response.status;
  } catch {
    return 0;
  }
}

async function ask(address: string, options: RequestInit): Promise<Response> {
  for (let tries = 0; ; tries++) {
    const response = await fetched(address, options);
    if (response.ok) return response;
    const error = await errorOf(response);
    if (error.status === 401) signedIn.value = false;
    if (error.retryAfter === null || tries >= MOST_RETRIES) throw error;
    await pause(Math.min(error.retryAfter || 0.5, LONGEST_PAUSE), options.signal ?? null);
  }
}

async function fetched(address: string, options: RequestInit): Promise<Response> {
  try {
    const response = await fetch(address, { credentials: "same-origin", redirect: "error", ...options });
    unreachable.value = isAway(response);
    return response;
  } catch (error) {
    if (options.signal?.aborted) throw error;
    // A file may be refused by the host that an address leads on to: that says nothing of this server.
    if (options.redirect !== "follow") unreachable.value = true;
    throw noAnswer();
  }
}

/** The error for a question without an answer. */
export function noAnswer(): ServerError {
  return new ServerError(0, "The server does not answer. Is it running, and is the network up?");
}

/** Whether a proxy answers in the place of the server, which itself says when it may be asked again. */
function isAway({ status, headers }: Response): boolean {
  return status === 502 || status === 504 || (status === 503 && !headers.has("retry-after"));
}

/** What the API (`{meta}`) or data (`{error}`) says is wrong. */
async function errorOf(response: Response): Promise<ServerError> {
  const said: unknown = await response.json().catch(() => null);
  const { meta, error } = (said ?? {}) as {
    meta?: { result_msg?: string; result_subcode?: number };
    error?: { message?: string };
  };
  const message = meta?.result_msg || error?.message || `The server answered ${response.status}.`;
  const wait = response.headers.get("retry-after");
  const again = (response.status === 429 || response.status === 503) && wait !== null ? Number(wait) || 0 : null;
  return new ServerError(response.status, message, meta?.result_subcode ?? 0, again);
}

function pause(seconds: number, signal: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(done, seconds * 1000);
    signal?.addEventListener("abort", stop);
    function done(): void {
      signal?.removeEventListener("abort", stop);
      resolve();
    }
    function stop(): void {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      reject(signal?.reason);
    }
  });
}
