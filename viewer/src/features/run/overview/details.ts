/** What the overview shows beside what every tab has: one question to the server. Pure, but for `details`. */

import { api } from "../../../api/client";
import type { LastMetric, ParamsItem, TaskEx } from "../../../api/endpoints";
import type { Part } from "../../../api/questions";

const FIELDS = [
  "script",
  "hyperparams",
  "configuration",
  "execution.artifacts",
  "execution.queue.name",
  "runtime",
  "container",
  "output.destination",
  "last_metrics",
  "last_worker",
  "active_duration",
  "published",
  "status_changed",
  "status_reason",
  "status_message",
  "models.input.model.name",
  "models.input.model.framework",
  "models.input.model.uri",
  "models.input.model.project",
  "models.output.model.name",
  "models.output.model.framework",
  "models.output.model.uri",
  "models.output.model.project",
  "models.input.name",
  "models.output.name",
] as const;
export type Details = Part<TaskEx, (typeof FIELDS)[number]>;
/** A model that a run used or made. */
export type UsedModel = NonNullable<NonNullable<Details["models"]>["input"]>[number];

/** A parameter in its section. */
export interface Parameter extends ParamsItem {
  readonly section: string;
  readonly name: string;
}

export async function details(task: string, signal: AbortSignal): Promise<Details> {
  const { tasks } = await api("tasks.get_all_ex", { id: [task], only_fields: FIELDS, search_hidden: true }, signal);
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
export function metricsOf(found: Details["last_metrics"]): LastMetric[] {
  const machine = (one: LastMetric): number => (one.metric.startsWith(":monitor:") ? 1 : 0);
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
