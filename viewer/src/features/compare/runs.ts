/** Runs that are compared, and their values as columns: parameters, numbers of metrics, fields. Pure. */

import type { TaskEx } from "../../api/endpoints";
import type { Part } from "../../api/questions";

/** What all tabs need of a run. */
export const FIELDS = [
  "id",
  "name",
  "status",
  "tags",
  "started",
  "last_update",
  "last_iteration",
  "active_duration",
  "project.name",
  "user.name",
  "hyperparams",
  "last_metrics",
] as const;
export type Run = Part<TaskEx, (typeof FIELDS)[number]>;

/** What a run has in a column; null if it has nothing there. */
export type Value = number | string | null;

export interface Column {
  /** As addresses name it: `hyperparams.Args/lr`, `min:loss/train`, `status`. */
  readonly name: string;
  /** Short, for people: `lr`, `loss/train`. */
  readonly label: string;
  readonly kind: "parameter" | "metric" | "field";
  /** Whether all values are numbers. */
  readonly numbers: boolean;
  /** In the order of the runs. */
  readonly values: readonly Value[];
  /** Of a metric: its names, unless it is a single value in all runs, which is no curve. */
  readonly series?: readonly [metric: string, variant: string];
}

/** Which number of a curve stands for a run. */
export const NUMBERS = ["last", "min", "max"] as const;
export type Number_ = (typeof NUMBERS)[number];
const FIELD_OF = { last: "value", min: "min_value", max: "max_value" } as const;

/** The iteration of a single value, as the SDK reports it. */
const SINGLE = -(2 ** 31);
const DURATION = "active_duration";
const naturally = new Intl.Collator("en", { numeric: true, sensitivity: "base" }).compare;

/** All columns that any of the runs has a value in, parameters first, each kind by name. */
export function columnsOf(runs: readonly Run[]): ReadonlyMap<string, Column> {
  const parameters = new Values(runs.length);
  const metrics = new Values(runs.length);
  const series = new Map<string, readonly [string, string]>();
  runs.forEach((run, row) => {
    for (const [section, values] of Object.entries(run.hyperparams ?? {})) {
      for (const [name, { value }] of Object.entries(values)) {
        parameters.set(`hyperparams.${section}/${name}`, row, value === undefined || value === "" ? null : value);
      }
    }
    for (const variants of Object.values(run.last_metrics ?? {})) {
      for (const last of Object.values(variants)) {
        for (const which of NUMBERS) {
          const value = last[FIELD_OF[which]];
          const name = `${which}:${last.metric}/${last.variant}`;
          if (last.min_value_iteration !== SINGLE) series.set(name, [last.metric, last.variant]);
          metrics.set(name, row, Number.isFinite(value) ? value! : null);
        }
      }
    }
  });
  const fields = new Values(runs.length);
  runs.forEach((run, row) => {
    fields.set("name", row, run.name);
    fields.set("status", row, run.status.replaceAll("_", " "));
    fields.set("user", row, run.user?.name ?? null);
    fields.set("project", row, run.project?.name ?? null);
    fields.set("last_iteration", row, run.last_iteration ?? null);
    fields.set(DURATION, row, run.active_duration ?? null);
  });
  const labels = shortLabels(parameters.names());
  const columns = [
    ...parameters.columns("parameter", (name) => labels.get(name) ?? name),
    ...metrics
      .columns("metric", (name) => name.slice(name.indexOf(":") + 1))
      .map((column) => ({ ...column, ...(series.has(column.name) && { series: series.get(column.name)! }) })),
    ...fields.columns("field", (name) => FIELD_LABELS[name] ?? name),
  ];
  return new Map(columns.map((column) => [column.name, column]));
}

const FIELD_LABELS: Readonly<Record<string, string>> = {
  name: "Name",
  status: "Status",
  user: "User",
  project: "Project",
  last_iteration: "Iterations",
  [DURATION]: "Duration (s)",
};

class Values {
  private readonly all = new Map<string, Value[]>();

  constructor(private readonly rows: number) {}

  set(name: string, row: number, value: Value): void {
    let values = this.all.get(name);
    if (!values) this.all.set(name, (values = Array<Value>(this.rows).fill(null)));
    values[row] = value;
  }

  names(): string[] {
    return [...this.all.keys()].sort(naturally);
  }

  columns(kind: Column["kind"], labelOf: (name: string) => string): Column[] {
    return this.names().map((name) => ({ name, label: labelOf(name), kind, ...asNumbers(this.all.get(name)!) }));
  }
}

/** The values as numbers, if all of them are: "1e-3" → 0.001. */
function asNumbers(values: readonly Value[]): { numbers: boolean; values: readonly Value[] } {
  const read = values.map((value) => (typeof value === "string" && value.trim() !== "" ? Number(value) : value));
  const numbers = read.every((value) => value === null || (typeof value === "number" && Number.isFinite(value)));
  return numbers && read.some((value) => value !== null) ? { numbers, values: read } : { numbers: false, values };
}

/** Parameters without their sections, where no two sections have the same: `hyperparams.Args/lr` → `lr`. */
function shortLabels(names: readonly string[]): Map<string, string> {
  const short = (name: string): string => name.slice(name.indexOf("/") + 1);
  const count = new Map<string, number>();
  for (const name of names) count.set(short(name), (count.get(short(name)) ?? 0) + 1);
  const unique = (name: string): boolean => count.get(short(name)) === 1;
  return new Map(names.map((name) => [name, unique(name) ? short(name) : name.slice("hyperparams.".length)]));
}

/** Whether not all runs have the same there. */
export function differs(column: Column): boolean {
  return column.values.some((value) => value !== column.values[0]);
}

/** Whether a metric tells about the machine, and not about what was trained. */
export function isMonitor(column: Pick<Column, "name">): boolean {
  return /^(last|min|max)::monitor:/.test(column.name);
}

/** Whether less is better: for losses, errors and times. For others, such as an accuracy, more is. */
export function lessIsBetter(name: string): boolean {
  return /loss|err|mse|mae|rmse|perplex|ppl|wer\b|cer\b|fid\b|nll|latency|time|duration|cost|regret/i.test(name);
}

/** Names of what should be large. */
const MORE =
  /acc(?!el)|(?<![a-z])(f1|auc|roc|map|iou|miou|dice|bleu|rouge|psnr|ssim|ndcg|mrr|r2|win)(?![a-z])|auroc|precision|recall|score|reward|throughput|per_sec/i;

/** Which value of a metric is best, as far as its name tells. Null if it does not: no learning rate is the best. */
export function directionOf(name: string): "least" | "greatest" | null {
  return lessIsBetter(name) ? "least" : MORE.test(name) ? "greatest" : null;
}

/** The metric that most people look at first: a loss or an accuracy of validation, if there is one. */
export function mainMetric(columns: Iterable<Column>): Column | null {
  const found = [...columns].filter((one) => one.kind === "metric" && !isMonitor(one) && differs(one));
  const rank = (column: Column): number => {
    const validation = /val|test|eval/i.test(column.label) ? 2 : 0;
    const usual = /acc|loss|f1|auc|map|bleu|score/i.test(column.label) ? 1 : 0;
    const best = column.name.startsWith(lessIsBetter(column.label) ? "min:" : "max:") ? 0.5 : 0;
    const filled = column.values.filter((value) => value !== null).length / Math.max(1, column.values.length);
    return validation + usual + best + 4 * filled;
  };
  return found.reduce<Column | null>((best, one) => (best && rank(best) >= rank(one) ? best : one), null);
}

/** The row whose value is best: the least or the greatest. −1 if there is no number. */
export function bestRow(values: readonly Value[], less: boolean): number {
  let best = -1;
  values.forEach((value, row) => {
    if (typeof value !== "number") return;
    const so_far = values[best] as number | undefined;
    if (so_far === undefined || (less ? value < so_far : value > so_far)) best = row;
  });
  return best;
}

/** Numbers by size, texts as people order them, nothing last. */
export function compareValues(one: Value, other: Value): number {
  if (one === null || other === null) return one === other ? 0 : one === null ? 1 : -1;
  if (typeof one === "number" && typeof other === "number") return one - other;
  return naturally(String(one), String(other));
}
