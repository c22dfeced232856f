/** What a search looks for, and how the server is asked for it. Pure. */

import type { Body } from "../../api/questions";
import { statusText } from "../../lib/status";
import { ALL, type Place } from "../../routes";
import type { Parameters } from "../../state/query";
import { columnOf } from "../runs/columns";
import type { Facts } from "../runs/facts";
import { type Condition, parametersOf } from "../runs/shown";

/** What the server looks for … */
export const LISTED = ["runs", "projects", "models", "reports", "datasets", "pipelines"] as const;
export type Listed = (typeof LISTED)[number];
/** … and the names of parameters and metrics, each of which leads to a table of runs. */
export const KINDS = [...LISTED, "columns"] as const;
export type Kind = (typeof KINDS)[number];

export const TITLES: Readonly<Record<Kind, string>> = {
  runs: "Runs",
  projects: "Projects",
  models: "Models",
  reports: "Reports",
  datasets: "Data sets",
  pipelines: "Pipelines",
  columns: "Parameters and metrics",
};

/** One thing that was found. */
export interface Found {
  readonly kind: Kind;
  readonly id: string;
  readonly title: string;
  /** What it is part of, its status, and such. */
  readonly notes: readonly string[];
  /** When it last changed. */
  readonly time: string | null;
  readonly to: Place;
  readonly with?: Parameters;
}

type Searched = "tasks.get_all_ex" | "projects.get_all" | "models.get_all_ex" | "reports.get_all_ex";
/** An endpoint, and what it is asked. */
export type Question = { [E in Searched]: { readonly endpoint: E; readonly body: Body<E> } }[Searched];

/** The question for `count` things of a kind that have all words of the text; the newest of all if there is no text. */
export function questionFor(kind: Listed, text: string, count: number): Question {
  const common = {
    ...(text.trim() && { search_text: text.trim() }),
    order_by: ["-last_update"],
    page: 0,
    page_size: count,
  };
  const task = ["name", "status", "project.name", "last_update", "system_tags", "tags"] as const;
  switch (kind) {
    case "projects":
      return { endpoint: "projects.get_all", body: { ...common, only_fields: ["name", "last_update"] } };
    case "models": {
      const fields = ["name", "framework", "project.name", "last_update", "system_tags", "ready"] as const;
      return { endpoint: "models.get_all_ex", body: { ...common, only_fields: fields } };
    }
    case "reports":
      return { endpoint: "reports.get_all_ex", body: { ...common, only_fields: task } };
    case "runs":
      return { endpoint: "tasks.get_all_ex", body: { ...common, only_fields: task } };
    case "datasets":
    case "pipelines": {
      const wanted = { search_hidden: true, system_tags: [kind === "datasets" ? "dataset" : "pipeline"] };
      return { endpoint: "tasks.get_all_ex", body: { ...common, ...wanted, only_fields: task } };
    }
  }
}

/** A document of an answer. */
export interface Document {
  readonly id: string;
  readonly name?: string;
  readonly status?: string;
  readonly framework?: string | null;
  readonly ready?: boolean;
  readonly last_update?: string;
  readonly project?: { readonly id: string; readonly name?: string | null } | null;
  readonly system_tags?: readonly string[];
  readonly tags?: readonly string[];
}

export function foundOf(kind: Listed, one: Document): Found {
  const project = one.project?.id ?? ALL;
  const notes = [
    one.project?.name && visible(one.project.name),
    kind === "models" ? one.framework : kind !== "reports" && one.status && statusText(one.status),
    one.ready && kind === "models" && "published",
    one.system_tags?.includes("archived") && "archived",
    ...(one.tags ?? []).slice(0, 5).map((tag) => `#${tag}`),
  ].filter((note): note is string => Boolean(note));
  const common = { kind, id: one.id, title: one.name ?? one.id, notes, time: one.last_update ?? null };
  switch (kind) {
    case "projects":
      return { ...common, to: { page: "runs", project: one.id } };
    case "models":
      return { ...common, to: { page: "model", project, model: one.id } };
    case "reports":
      return { ...common, to: { page: "report", report: one.id } };
    default:
      return { ...common, to: { page: "run", project, task: one.id, tab: "overview" } };
  }
}

/**
 * The parameters and metrics that have all words of the text in their names: a table of all runs, sorted by each of them.
 * "lr=0.1": the runs that have this value of a parameter.
 */
export function columnsFound({ parameters, curves }: Facts, text: string): Found[] {
  const words = text.trim().split(/\s+/).filter(Boolean);
  const valued = words.find((word) => /^[^=]+=./.test(word));
  const value = valued?.slice(valued.indexOf("=") + 1);
  const wanted = words.map((word) => (word === valued ? word.slice(0, word.indexOf("=")) : word).toLowerCase());
  if (!wanted.length) return [];
  const names = [...parameters, ...(value === undefined ? curves.map((curve) => `last:${curve}`) : [])];
  return names
    .filter((name) =>
      wanted.every((word) =>
        name
          .slice(name.search(/[.:]/) + 1)
          .toLowerCase()
          .includes(word),
      ),
    )
    .map((name) => {
      const { title, note, kind } = columnOf(name);
      const isParameter = kind === "parameter";
      const conditions: Condition[] = value === undefined ? [] : [[name, "is", value]];
      const sort = isParameter ? name : `-${name}`;
      return {
        kind: "columns",
        id: name,
        title: value === undefined ? title : `${title} = ${value}`,
        notes: isParameter ? ["parameter", note] : ["metric"],
        time: null,
        to: { page: "runs", project: ALL },
        with: parametersOf({ columns: ["name", "status", "project", name, "created"], conditions, sort }),
      };
    });
}

/** Without the hidden projects of ClearML: "Vision/.datasets/coco" → "Vision/coco". */
function visible(project: string): string {
  return project
    .split("/")
    .filter((step) => !step.startsWith("."))
    .join("/");
}
