/** What a project's runs have that can be a column: parameters and metrics. */

import { api } from "../../api/client";
import { type Asked, useAsked } from "../../hooks/asked";
import { ALL } from "../../routes";

export interface Facts {
  /** `hyperparams.Args/lr` */
  readonly parameters: readonly string[];
  /** `loss/train` */
  readonly curves: readonly string[];
}

export function useFacts(project: string, inside: boolean, wanted: boolean): Asked<Facts> {
  return useAsked(wanted ? `${project} ${inside}` : null, (signal) => factsOf(project, inside, signal));
}

export async function factsOf(project: string, inside: boolean, signal?: AbortSignal): Promise<Facts> {
  // The server takes no name of a project for all of them.
  const scope = { include_subprojects: inside || project === ALL, project: project === ALL ? "" : project };
  const [parameters, metrics] = await Promise.all([
    api("projects.get_hyper_parameters", { ...scope, page: 0, page_size: 5000 }, signal),
    api("projects.get_unique_metric_variants", scope, signal),
  ]);
  return {
    parameters: parameters.parameters.map(({ section, name }) => `hyperparams.${section}/${name}`),
    curves: [...new Set(metrics.metrics.map(({ metric, variant }) => `${metric}/${variant}`))],
  };
}
