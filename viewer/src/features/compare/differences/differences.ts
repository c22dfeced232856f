/** What runs were made of, as rows: parameters, configuration, code and packages, a value for each run. Pure. */

import type { Script, TaskEx } from "../../../api/endpoints";
import type { Part } from "../../../api/questions";
import { compareValues } from "../runs";

/** What the rows are made of. */
export const DETAIL_FIELDS = [
  "id",
  "name",
  "status",
  "type",
  "comment",
  "tags",
  "project.name",
  "user.name",
  "parent.name",
  "hyperparams",
  "configuration",
  "container",
  "script",
] as const;
export type Details = Part<TaskEx, (typeof DETAIL_FIELDS)[number]>;

export interface Row {
  /** Which row it is: the section and the name. */
  readonly key: string;
  readonly name: string;
  /** In the order of the runs; null where a run has nothing. */
  readonly values: readonly (string | null)[];
  readonly differs: boolean;
  /** Whether values are texts of several lines, which are compared line by line. */
  readonly text: boolean;
}

export interface Section {
  readonly title: string;
  readonly rows: readonly Row[];
  /** How many rows differ. */
  readonly different: number;
}

const LONG = 200;

/** All sections that have rows, in the order in which people look at them. */
export function sectionsOf(runs: readonly Details[]): Section[] {
  const sections = new Map<string, Map<string, (string | null)[]>>();
  runs.forEach((run, at) => {
    for (const [title, name, value] of valuesOf(run)) {
      if (value === null || value === undefined || value === "") continue;
      let rows = sections.get(title);
      if (!rows) sections.set(title, (rows = new Map()));
      let values = rows.get(name);
      if (!values) rows.set(name, (values = Array<string | null>(runs.length).fill(null)));
      values[at] = value;
    }
  });
  return [...sections].sort(byPlace).map(([title, rows]) => sectionOf(title, rows));
}

/** The rows that differ, or all of them, of those that have `find` in their name or a value. */
export function shownRows(section: Section, all: boolean, find: string): Row[] {
  const wanted = find.toLowerCase();
  const has = (text: string | null): boolean => text?.toLowerCase().includes(wanted) ?? false;
  return section.rows.filter((row) => (all || row.differs) && (!wanted || has(row.name) || row.values.some(has)));
}

/** How many runs have each value, the most frequent first. */
export function countsOf(values: readonly (string | null)[]): { value: string | null; runs: number }[] {
  const counts = new Map<string | null, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].map(([value, runs]) => ({ value, runs })).sort((one, other) => other.runs - one.runs);
}

const ORDER = ["Run", "Parameters", "Configuration", "Code", "Packages", "Container"];

function byPlace([one]: readonly [string, unknown], [other]: readonly [string, unknown]): number {
  const place = (title: string): number => ORDER.findIndex((start) => title.startsWith(start));
  return place(one) - place(other) || compareValues(one, other);
}

function sectionOf(title: string, rows: ReadonlyMap<string, (string | null)[]>): Section {
  const made = [...rows].map(([name, values]): Row => {
    const text = values.some((value) => value !== null && (value.includes("\n") || value.length > LONG));
    return { key: `${title}/${name}`, name, values, differs: values.some((value) => value !== values[0]), text };
  });
  if (title.startsWith("Parameters") || title === "Packages")
    made.sort((one, other) => compareValues(one.name, other.name));
  return { title, rows: made, different: made.filter((row) => row.differs).length };
}

type Found = readonly [section: string, name: string, value: string | null | undefined];

function* valuesOf(run: Details): Generator<Found> {
  yield ["Run", "Status", run.status.replaceAll("_", " ")];
  yield ["Run", "Type", run.type];
  yield ["Run", "Project", run.project?.name];
  yield ["Run", "User", run.user?.name];
  yield ["Run", "Tags", [...(run.tags ?? [])].sort().join(", ")];
  yield ["Run", "Comment", run.comment];
  yield ["Run", "Parent", run.parent?.name ?? run.parent?.id];
  for (const [section, values] of Object.entries(run.hyperparams ?? {})) {
    for (const [name, { value }] of Object.entries(values)) yield [`Parameters: ${section}`, name, value];
  }
  for (const [name, { value }] of Object.entries(run.configuration ?? {})) yield ["Configuration", name, value];
  const script: Script = run.script ?? {};
  yield ["Code", "Repository", script.repository];
  yield ["Code", "Branch", script.branch];
  yield ["Code", "Tag", script.tag];
  yield ["Code", "Commit", script.version_num];
  yield ["Code", "Script", script.entry_point];
  yield ["Code", "Folder", script.working_dir];
  yield ["Code", "Python", script.binary];
  yield ["Code", "Uncommitted changes", script.diff];
  for (const [name, version] of packagesOf(script.requirements)) yield ["Packages", name, version];
  yield ["Container", "Image", run.container?.["image"]];
  yield ["Container", "Arguments", run.container?.["arguments"]];
  yield ["Container", "Setup script", run.container?.["setup_shell_script"]];
}

/**
 * Versions of packages by their names: `numpy==2.1.0` → numpy, 2.1.0. A line that names no version, such as an address,
 * is a name with itself as version.
 */
export function packagesOf(requirements: Readonly<Record<string, unknown>> | undefined): Map<string, string> {
  const found = new Map<string, string>();
  const listed = requirements?.["pip"];
  const lines = typeof listed === "string" ? listed.split(/\r?\n/) : Array.isArray(listed) ? listed.map(String) : [];
  for (const line of lines) {
    const text = line.replace(/(^|\s)#.*$/, "").trim();
    if (!text) continue;
    const [, name, version] = /^([A-Za-z0-9][\w.-]*(?:\[[^\]]*\])?)\s*(?:(?:={2,3}|@)\s*)?(.*)$/.exec(text) ?? [];
    found.set(name ?? text, version || "any version");
  }
  return found;
}
