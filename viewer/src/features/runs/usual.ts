/**
 * The columns of a table that nobody has chosen columns for: a few metrics and parameters of the project, found in its
 * newest runs.
 */

import { useMemo } from "preact/hooks";

import { data } from "../../api/client";
import { useAsked } from "../../hooks/asked";
import { ALL } from "../../routes";
import { remember, remembered } from "../../state/session";
import { candidatesOf, fromRuns, type Values } from "./choosing";
import { useFacts } from "./facts";
import { namesText, type Shown, USUAL_COLUMNS, whereOf } from "./shown";

/** So many of the newest runs are looked at. */
const RUNS = 50;
/** Behind how many of the usual columns the project's own ones stand: behind the name and the status. */
const BEFORE = 2;

/**
 * The usual columns of a project, with those that its runs have. What was found last time is shown at once; the answer
 * takes its place when it is here. `wanted`: false where there is no room, or columns are chosen already.
 */
export function useUsualColumns(project: string, shown: Shown, wanted: boolean): readonly string[] {
  const asks = wanted && project !== ALL;
  const facts = useFacts(project, shown.inside, asks);
  const candidates = asks && facts.value ? candidatesOf(facts.value) : null;
  const columns = candidates && namesText([...candidates.curves, ...candidates.parameters]);
  const asked = useAsked(columns ? `${project} ${shown.inside} ${columns}` : null, async (signal) => {
    const found = fromRuns(await newest(project, shown, columns!, signal), candidates!);
    remember(`usual columns ${project}`, found);
    return found;
  });
  const before = useMemo(() => remembered<string[]>(`usual columns ${project}`, []), [project]);
  if (!asks) return USUAL_COLUMNS;
  const own = asked.value ?? before;
  return own.length ? [...USUAL_COLUMNS.slice(0, BEFORE), ...own, ...USUAL_COLUMNS.slice(BEFORE)] : USUAL_COLUMNS;
}

/** What the newest runs have in these columns, whatever the table's filter lets through. */
function newest(project: string, shown: Shown, columns: string, signal: AbortSignal): Promise<Values[]> {
  const where = whereOf({ ...shown, conditions: [], search: "" });
  const query = { columns, where, recursive: shown.inside ? 1 : 0, sort: "-created", limit: RUNS };
  return data<Values[]>(`/data/projects/${encodeURIComponent(project)}/tasks.json`, query, signal);
}
