/**
 * What a frame in a report embeds, as its address says it: ClearML's web UI writes
 * `/widgets/?type=plot&tasks=ID&metrics=confusion&variants=validation`. Pure.
 */

export interface Widget {
  readonly type: "plot" | "scalar" | "sample" | "single";
  readonly tasks: readonly string[];
  readonly models: boolean;
  readonly metrics: readonly string[];
  /** Empty: all. */
  readonly variants: readonly string[];
}

const TYPES: readonly string[] = ["plot", "scalar", "sample", "single"];
/** So many runs are shown together. */
const MOST_TASKS = 100;

/** The widget at an address; null if it is none that we know. */
export function widgetOf(src: string): Widget | null {
  const [path = "", text = ""] = src.split("?", 2);
  if (!/(^|\/)widgets\/?$/.test(path)) return null;
  const query = new URLSearchParams(text.split("#", 1)[0]);
  const type = query.get("type") ?? "";
  if (!TYPES.includes(type)) return null;
  const ids = ["tasks", "objects", "models"].flatMap((name) => query.getAll(name)).flatMap((ids) => ids.split(","));
  return {
    type: type as Widget["type"],
    tasks: [...new Set(ids.filter(Boolean))].slice(0, MOST_TASKS),
    models: query.get("objectType") === "model" || query.has("models"),
    metrics: names(query, "metrics"),
    variants: names(query, "variants"),
  };
}

function names(query: URLSearchParams, name: string): string[] {
  return query.getAll(name).filter(Boolean);
}
