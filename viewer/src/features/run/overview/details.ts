/** What the overview shows beside what every tab has: one question to the server. Pure, but for `details`. */

import { api } from "../../../api/client";

export interface Parameter {
  readonly section: string;
  readonly name: string;
  readonly value?: string;
  readonly type?: string;
  readonly description?: string;
}

export interface Artifact {
  readonly key: string;
  readonly type: string;
  readonly mode?: string;
  readonly uri?: string;
  readonly content_size?: number;
  readonly hash?: string;
  readonly timestamp?: number;
  readonly type_data?: { readonly preview?: string };
}

export interface UsedModel {
  readonly name: string;
  readonly model: {
    readonly id: string;
    readonly name?: string | null;
    readonly framework?: string | null;
    readonly uri?: string | null;
    readonly project?: string | null;
  };
}

export interface Metric {
  readonly metric: string;
  readonly variant: string;
  readonly value?: number;
  readonly min_value?: number;
  readonly min_value_iteration?: number;
  readonly max_value?: number;
  readonly max_value_iteration?: number;
}

export interface Details {
  readonly id: string;
  readonly script?: {
    readonly repository?: string;
    readonly branch?: string;
    readonly tag?: string;
    readonly version_num?: string;
    readonly entry_point?: string;
    readonly working_dir?: string;
    readonly binary?: string;
    readonly diff?: string;
    readonly requirements?: Readonly<Record<string, unknown>>;
  };
  readonly hyperparams?: Readonly<Record<string, Readonly<Record<string, Parameter>>>>;
  readonly configuration?: Readonly<Record<string, { value?: string; type?: string; description?: string }>>;
  readonly execution?: {
    readonly artifacts?: readonly Artifact[];
    readonly queue?: { id: string; name?: string | null };
  };
  readonly models?: { readonly input?: readonly UsedModel[]; readonly output?: readonly UsedModel[] };
  readonly runtime?: Readonly<Record<string, unknown>>;
  readonly container?: Readonly<Record<string, string>>;
  readonly output?: { readonly destination?: string };
  readonly last_metrics?: Readonly<Record<string, Readonly<Record<string, Metric>>>>;
  readonly last_worker?: string;
  readonly active_duration?: number;
  readonly published?: string;
  readonly status_changed?: string;
  readonly status_reason?: string;
  readonly status_message?: string;
}

const MODEL_FIELDS = ["name", "framework", "uri", "project"];
const FIELDS = [
  ...["script", "hyperparams", "configuration", "execution.artifacts", "execution.queue.name", "runtime", "container"],
  ...["output.destination", "last_metrics", "last_worker", "active_duration", "published"],
  ...["status_changed", "status_reason", "status_message"],
  ...["input", "output"].flatMap((kind) => MODEL_FIELDS.map((field) => `models.${kind}.model.${field}`)),
  ...["models.input.name", "models.output.name"],
];

export async function details(task: string, signal: AbortSignal): Promise<Details> {
  const { tasks } = await api<{ tasks: Details[] }>(
    "tasks.get_all_ex",
    { id: [task], only_fields: FIELDS, search_hidden: true },
    signal,
  );
  const [found] = tasks;
  if (!found) throw new Error("there is no such run any more");
  return found;
}

/** The sections of the parameters in order: Args first, then General, then by name. */
export function sectionsOf(found: Details["hyperparams"]): { section: string; parameters: Parameter[] }[] {
  const rank = (name: string): number => (name === "Args" ? 0 : name === "General" ? 1 : 2);
  return Object.entries(found ?? {})
    .map(([section, parameters]) => ({
      section,
      parameters: Object.entries(parameters)
        .map(([name, one]) => ({ ...one, section, name: one.name ?? name }))
        .sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true })),
    }))
    .filter(({ parameters }) => parameters.length)
    .sort((a, b) => rank(a.section) - rank(b.section) || a.section.localeCompare(b.section));
}

/** All metrics, sorted by name; those of machines (":monitor:gpu") come last. */
export function metricsOf(found: Details["last_metrics"]): Metric[] {
  const machine = (one: Metric): number => (one.metric.startsWith(":monitor:") ? 1 : 0);
  return Object.values(found ?? {})
    .flatMap((variants) => Object.values(variants))
    .filter((one) => typeof one?.metric === "string" && typeof one.variant === "string")
    .sort((a, b) => machine(a) - machine(b) || a.metric.localeCompare(b.metric) || a.variant.localeCompare(b.variant));
}

/** A package and its version, as a line of pip's or conda's list says: "torch == 2.4.0". */
export interface Package {
  readonly manager: string;
  readonly name: string;
  readonly version: string;
}

/** The packages of all managers, and the lines that are none, such as comments, left out. */
export function packagesOf(requirements: Readonly<Record<string, unknown>> | undefined): Package[] {
  return Object.entries(requirements ?? {}).flatMap(([manager, text]) =>
    (Array.isArray(text) ? text.map(String) : typeof text === "string" ? text.split("\n") : [])
      .map((line) => line.trim())
      .filter((line) => line && !line.startsWith("#"))
      .map((line) => {
        const [, name = line, version = ""] = /^([^\s=<>~!;@]+)\s*(?:[=<>~!]=?=?|@)?\s*(.*)$/.exec(line) ?? [];
        return { manager, name, version };
      }),
  );
}

/** What to send so that parameters become what a user made of them. Names without text are left out. */
export function changesOf(
  before: readonly Parameter[],
  after: readonly Parameter[],
): { set: Parameter[]; remove: { section: string; name: string }[] } {
  const key = (one: { section: string; name: string }): string => JSON.stringify([one.section, one.name]);
  const old = new Map(before.map((one) => [key(one), one]));
  const named = after.filter((one) => one.name.trim() && one.section.trim());
  const kept = new Set(named.map(key));
  return {
    set: named.filter((one) => old.get(key(one))?.value !== one.value),
    remove: before.filter((one) => !kept.has(key(one))).map(({ section, name }) => ({ section, name })),
  };
}
