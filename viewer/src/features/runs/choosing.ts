/** Chooses which metrics and parameters of a project tell most about its runs. Pure. */

import type { Facts } from "./facts";

/** What a run has in columns. */
export type Values = Readonly<Record<string, unknown>>;

/** Names of columns that may be chosen. */
export interface Candidates {
  readonly curves: readonly string[];
  readonly parameters: readonly string[];
}

/** So many are looked at in runs: their names are in the address of one question. */
const MOST_CURVES = 12;
const MOST_PARAMETERS = 40;
/** So many are chosen. */
const CURVES = 3;
const PARAMETERS = 2;

const USUAL_CURVES = /loss|acc|f1|auc|map\b|bleu|score|reward|perplex|error/i;
const USUAL_PARAMETERS =
  /(^|[/_.-])(lr|learning_?rate|batch_?size|optim(izer)?|model|arch|depth|layers|dropout|weight_decay)$/i;
/** What differs in most runs, and says nothing about their results. */
const TELLING_NOTHING = /seed|dir(ectory)?$|path|file|name$|(^|[/_.-])(id|host|port|rank)$|device|log|output|workers/i;

const naturally = new Intl.Collator("en", { numeric: true, sensitivity: "base" }).compare;

/** The metrics and parameters that people look at first, as names of columns; machines' metrics are left out. */
export function candidatesOf({ curves, parameters }: Pick<Facts, "curves" | "parameters">): Candidates {
  const trained = curves.filter((name) => !name.startsWith(":monitor:"));
  return {
    curves: ranked(trained, curveRank)
      .slice(0, MOST_CURVES)
      .map((name) => `last:${name}`),
    parameters: ranked(parameters, parameterRank).slice(0, MOST_PARAMETERS),
  };
}

/**
 * Of the candidates, the metrics that at least half of the runs with any metric have, and the parameters that differ
 * between runs. The best ranked come first.
 */
export function fromRuns(runs: readonly Values[], { curves, parameters }: Candidates): string[] {
  return [
    ...common(runs, curves).slice(0, CURVES),
    ...common(runs, parameters)
      .filter((name) => new Set(runs.map((run) => run[name]).filter(Boolean)).size > 1)
      .slice(0, PARAMETERS),
  ];
}

/** The columns in which at least half of those runs have a value that have one in any of them. */
function common(runs: readonly Values[], names: readonly string[]): string[] {
  const has = (run: Values, name: string): boolean => run[name] !== null && run[name] !== undefined && run[name] !== "";
  const some = runs.filter((run) => names.some((name) => has(run, name)));
  return names.filter((name) => {
    const count = some.filter((run) => has(run, name)).length;
    return count > 0 && 2 * count >= some.length;
  });
}

function ranked(names: readonly string[], rank: (name: string) => number): string[] {
  return [...names].sort((one, other) => rank(other) - rank(one) || naturally(one, other));
}

function curveRank(name: string): number {
  return USUAL_CURVES.test(name) ? 1 : 0;
}

function parameterRank(name: string): number {
  return USUAL_PARAMETERS.test(name) ? 2 : TELLING_NOTHING.test(name) ? 0 : 1;
}
