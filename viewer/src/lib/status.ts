/** Statuses of runs in words. Pure. */

/** A status as people say it. */
export function statusText(status: string): string {
  return { in_progress: "running", created: "draft", stopped: "aborted" }[status] ?? status.replaceAll("_", " ");
}
