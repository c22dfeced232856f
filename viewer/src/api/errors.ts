/** Errors of questions, in words. */

import { ServerError } from "./client";

/** The server knows nothing of what is asked for. */
export class NotThere extends Error {}

export function wordsOf(error: Error): string {
  if (!(error instanceof ServerError)) return `This page has an error: ${error.message}`;
  if (error.status === 403) return `You may not do that: ${error.message}`;
  if (error.status === 429 || error.status === 503) return `The server is busy: ${error.message}`;
  return error.message;
}
