/**
 * Which page an address shows, and the address of a page. Pure: it touches neither the document nor the network.
 *
 * ClearML's SDK and web UI have addresses of their own for the same things. They are understood, too:
 * `/projects/P/experiments/T/output/metrics/scalar` is the tab "scalars" of the run T.
 */

export const TABS = ["overview", "scalars", "system", "plots", "images", "console"] as const;
export type Tab = (typeof TABS)[number];

/** All projects together, in the place of a project's id. */
export const ALL = "*";

/** What a page shows, without what its query says. */
export type Place =
  | { page: "projects" }
  | { page: "runs"; project: string }
  | { page: "run"; project: string; task: string; tab: Tab }
  | { page: "compare"; project: string; given?: string }
  | { page: "models"; project: string }
  | { page: "model"; project: string; model: string }
  | { page: "reports" }
  | { page: "report"; report: string }
  | { page: "datasets" }
  | { page: "pipelines" }
  | { page: "search" }
  | { page: "settings" }
  | { page: "usage" }
  | { page: "audit" }
  | { page: "sign-in" }
  | { page: "short"; id: string }
  | { page: "unknown" };

/** The tabs by the rest of an address behind the run's id: ours, and those of ClearML's SDK and web UI. */
const TAB_OF: Readonly<Record<string, Tab>> = {
  "": "overview",
  execution: "overview",
  configuration: "overview",
  "hyper-params": "overview",
  "info-output": "overview",
  artifacts: "overview",
  general: "overview",
  details: "overview",
  "output/log": "console",
  "output/metrics/scalar": "scalars",
  "output/metrics/plots": "plots",
  "output/debugImages": "images",
  "info-output/log": "console",
  "info-output/metrics/scalar": "scalars",
  "info-output/metrics/plots": "plots",
  "info-output/debugImages": "images",
};

/** The pages of settings in ClearML's web UI. The SDK sends users to the second one for an access key. */
const SETTINGS_OF_CLEARML: readonly string[] = ["profile", "workspace-configuration", "webapp-configuration"];

/** What the path of an address shows: `/projects/p1/tasks/t1/scalars` → the tab of a run. */
export function placeOf(path: string): Place {
  const steps = path.split("/").filter(Boolean).map(decoded);
  const [first = "", second, third, fourth, ...rest] = steps;
  switch (first) {
    case "":
      return { page: "projects" };
    case "projects":
      return second === undefined ? { page: "projects" } : inProject(second, third, fourth, rest);
    case "datasets":
    case "pipelines":
      return asRun(steps) ?? { page: first };
    case "models":
      return second === undefined ? { page: "models", project: ALL } : { page: "model", project: ALL, model: second };
    case "reports":
      return second === undefined ? { page: "reports" } : { page: "report", report: steps.at(-1) ?? second };
    case "compare":
      return { page: "compare", project: ALL };
    case "s":
      return second === undefined ? { page: "unknown" } : { page: "short", id: second };
    case "settings":
      if (second === "usage" || second === "audit") return { page: second };
      return { page: second === undefined || SETTINGS_OF_CLEARML.includes(second) ? "settings" : "unknown" };
    case "search":
    case "sign-in":
      return { page: first };
    default:
      return { page: "unknown" };
  }
}

function inProject(project: string, kind: string | undefined, id: string | undefined, rest: string[]): Place {
  switch (kind) {
    case undefined:
    case "overview":
      return { page: "runs", project };
    case "tasks":
    case "experiments":
      return id === undefined ? { page: "runs", project } : { page: "run", project, task: id, tab: tabOf(rest) };
    case "models":
      return id === undefined ? { page: "models", project } : { page: "model", project, model: id };
    case "compare":
      return { page: "compare", project };
    default:
      return ofClearml(project, kind, id === undefined ? [] : [id, ...rest]);
  }
}

/** A comparison as ClearML's web UI writes it: `compare-experiments;ids=a,b/scalars/graph`. */
function ofClearml(project: string, kind: string, rest: string[]): Place {
  const ids = /^compare-(?:experiments|tasks);ids=([^;]*)/.exec(kind)?.[1];
  return ids === undefined ? { page: "unknown" } : { page: "compare", project, given: [ids, ...rest].join("/") };
}

/** A version of a data set and a run of a pipeline are runs: `/datasets/simple/P/experiments/T`. */
function asRun(steps: readonly string[]): Place | null {
  const at = steps.findIndex((step) => step === "experiments" || step === "tasks");
  const [project, task] = [steps[at - 1], steps[at + 1]];
  return at > 0 && project && task ? { page: "run", project, task, tab: tabOf(steps.slice(at + 2)) } : null;
}

function tabOf(rest: readonly string[]): Tab {
  const name = rest.join("/");
  const own = TABS.find((tab) => tab === name);
  return own ?? TAB_OF[name] ?? TAB_OF[rest[0] ?? ""] ?? "overview";
}

/** The address of a place, without a query: the reverse of `placeOf`. */
export function pathOf(place: Place): string {
  switch (place.page) {
    case "projects":
      return "/projects";
    case "runs":
      return joined("projects", place.project);
    case "run":
      return joined("projects", place.project, "tasks", place.task, place.tab);
    case "compare":
      return joined("projects", place.project, "compare");
    case "models":
      return place.project === ALL ? "/models" : joined("projects", place.project, "models");
    case "model":
      return joined("projects", place.project, "models", place.model);
    case "report":
      return joined("reports", place.report);
    case "short":
      return joined("s", place.id);
    case "usage":
    case "audit":
      return joined("settings", place.page);
    case "unknown":
      return "/";
    default:
      return joined(place.page);
  }
}

/** The page of the navigation that a page belongs to; null if it belongs to none. */
export function partOf(place: Place): "projects" | "models" | "reports" | "settings" | null {
  switch (place.page) {
    case "projects":
    case "runs":
    case "run":
    case "compare":
      return "projects";
    case "models":
    case "model":
      return "models";
    case "reports":
    case "report":
      return "reports";
    case "settings":
    case "usage":
    case "audit":
      return "settings";
    default:
      return null;
  }
}

function joined(...steps: string[]): string {
  return steps.map((step) => `/${step === ALL ? ALL : encodeURIComponent(step)}`).join("");
}

function decoded(step: string): string {
  try {
    return decodeURIComponent(step);
  } catch {
    return step; // "%" alone is no encoding: take it as it is
  }
}
