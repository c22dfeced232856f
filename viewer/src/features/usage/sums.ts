/** What is kept, as `/data/usage` tells it: a row for each type of event of a project or task, and for its files. Pure. */

/** A row of `/data/usage.json?by=project`; by task, it also says which. */
export interface UsageRow {
  readonly project: string;
  readonly project_name: string;
  /** Empty: files in no task's folder. */
  readonly kind?: "task" | "model" | "history" | "";
  readonly id?: string;
  readonly name?: string;
  readonly type: string;
  readonly bytes: number;
  readonly series: number;
  readonly points: number;
  readonly lines: number;
  readonly samples: number;
  readonly files: number;
}

/** A row of `/data/usage.json?by=quota`. */
export interface QuotaRow {
  readonly of: "task" | "project" | "user" | "company";
  readonly id: string;
  readonly name: string;
  readonly bounded: "bytes" | "series";
  readonly used: number;
  readonly quota: number;
  /** As `of`, but "model" if the quota of a task is a model's. */
  readonly kind: "task" | "model" | "project" | "user" | "company";
}

/** What a project, a task, or a type of events has in all. */
export interface Sum {
  readonly key: string;
  /** The first of its rows, which says what it is. */
  readonly row: UsageRow;
  bytes: number;
  series: number;
  points: number;
  lines: number;
  samples: number;
  files: number;
}

const AMOUNTS = ["bytes", "series", "points", "lines", "samples", "files"] as const;

/** The sums of all rows of the same key, those of most bytes first. */
export function sumsBy(rows: readonly UsageRow[], keyOf: (row: UsageRow) => string): Sum[] {
  const sums = new Map<string, Sum>();
  for (const row of rows) {
    const key = keyOf(row);
    let sum = sums.get(key);
    if (!sum) sums.set(key, (sum = { key, row, bytes: 0, series: 0, points: 0, lines: 0, samples: 0, files: 0 }));
    for (const amount of AMOUNTS) sum[amount] += row[amount];
  }
  return [...sums.values()].sort((a, b) => b.bytes - a.bytes);
}

/** 0.8312 → "83 %", 0.0042 → "0.42 %". It never says 100 % of what is not full, or 0 % of what is not empty. */
export function percent(part: number): string {
  if (part > 0 && part < 0.0001) return "< 0.01 %";
  if (part > 0 && part < 0.01) return `${Number((part * 100).toPrecision(part < 0.001 ? 1 : 2))} %`;
  return `${part < 1 ? Math.min(Math.round(part * 100), 99) : Math.round(part * 100)} %`;
}

/** The quotas of one project, task, user or company. */
export function quotasOf(quotas: readonly QuotaRow[], of: QuotaRow["of"], id: string): QuotaRow[] {
  return quotas.filter((one) => one.of === of && one.id === id);
}

/** From this part of a quota on, most of it is used up. */
const NEAR = 0.8;

/** What words say of a quota of which so much is used; empty: there is room. */
export function fullness(quota: QuotaRow): "" | "nearly used up" | "used up" {
  const part = quota.used / quota.quota;
  return part >= 1 ? "used up" : part >= NEAR ? "nearly used up" : "";
}
