/** What is said in the place of content: that it is on its way, that there is none, or what went wrong. */

import type { ComponentChildren, JSX } from "preact";

import { ServerError } from "../api/client";
import css from "./Notice.module.css";

/** An error in words, with what to do. */
export function Failed({ error, again }: { error: Error; again?: () => void }): JSX.Element {
  return (
    <div class={css["failed"]} role="alert">
      <p>{wordsOf(error)}</p>
      {again && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Waiting({ what = "Loading" }: { what?: string }): JSX.Element {
  return (
    <div class={css["waiting"]} role="status">
      {what}…
    </div>
  );
}

/** There is nothing to show, and how that can change. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class={css["empty"]}>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function wordsOf(error: Error): string {
  if (!(error instanceof ServerError)) return `This page has an error: ${error.message}`;
  if (error.status === 403) return `You may not do that: ${error.message}`;
  if (error.status === 429 || error.status === 503) return `The server is busy: ${error.message}`;
  return error.message;
}
