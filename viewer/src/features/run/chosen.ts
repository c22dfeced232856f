/** Which iterations a page shows, as its address says it: `iter=300` for all metrics, `at=loss@200` for one. Pure. */

const NEWEST = "newest";

export interface Chosen {
  /** For all metrics that have none of their own; null is the newest. */
  readonly all: number | null;
  readonly of: ReadonlyMap<string, number | null>;
}

export function chosenIn(query: URLSearchParams): Chosen {
  const of = new Map<string, number | null>();
  for (const text of query.getAll("at")) {
    const end = text.lastIndexOf("@");
    const said = text.slice(end + 1);
    const iteration = whole(said);
    if (end >= 0 && (iteration !== null || said === NEWEST)) of.set(text.slice(0, end), iteration);
  }
  return { all: whole(query.get("iter")), of };
}

/** The iteration of a metric; null is the newest. */
export function iterationOf(chosen: Chosen, metric: string): number | null {
  return chosen.of.has(metric) ? (chosen.of.get(metric) ?? null) : chosen.all;
}

/** The parameter `at` after another iteration was chosen for a metric. */
export function choose(chosen: Chosen, metric: string, iteration: number | null): { at: string[] } {
  const of = new Map(chosen.of);
  if (iteration === chosen.all) of.delete(metric);
  else of.set(metric, iteration);
  return { at: [...of].map(([name, at]) => `${name}@${at ?? NEWEST}`) };
}

function whole(text: string | null): number | null {
  return text !== null && /^-?\d{1,15}$/.test(text) ? Number(text) : null;
}
