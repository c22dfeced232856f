/** Lines of the audit log, as `/data/audit` tells them. Pure. */

/** A row of `/data/audit.json`. */
export interface AuditLine {
  readonly n: number;
  /** In UTC: "2026-11-24T15:02:11.484Z". */
  readonly time: string | null;
  readonly action: string | null;
  readonly user: string | null;
  readonly name: string | null;
  readonly key: string | null;
  readonly address: string | null;
  readonly what: Readonly<Record<string, unknown>> | null;
  /** The status of the answer. */
  readonly code: number;
  readonly times: number;
}

/** Who it was: the name, or else the id. Callers whom nobody knows have an address, and the server itself has none. */
export function whoOf(line: AuditLine): string {
  return line.name || line.user || (line.address ? "unknown" : "the server");
}

/** What was acted on: {task: "t1", force: true} → "task: t1, force: true". */
export function whatOf(line: AuditLine): string {
  return Object.entries(line.what ?? {})
    .map(([name, value]) => `${name}: ${Array.isArray(value) ? value.join(" ") : inWords(value)}`)
    .join(", ");
}

function inWords(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** How it was answered: "200", or "401, 12 times" of what happened again. */
export function answerOf(line: AuditLine): string {
  return line.times > 1 ? `${line.code}, ${line.times} times` : String(line.code);
}
