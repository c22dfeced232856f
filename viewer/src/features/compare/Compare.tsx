/** Many runs side by side: who takes part, and tabs that show them. The address holds all that is chosen. */

import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";

import { looks } from "../../chart/line";
import { useKeys } from "../../hooks/keys";
import { useSame } from "../../hooks/same";
import { useTitle } from "../../hooks/title";
import { counted } from "../../lib/times";
import { ALL } from "../../routes";
import { addressOf, go, type Parameters, query, replace } from "../../state/address";
import { dark } from "../../state/session";
import { Link } from "../../ui/Link";
import { Empty, Failed, Waiting } from "../../ui/Notice";
import { Tabs } from "../../ui/Tabs";
import { Views } from "../views/Views";
import { chosenRows } from "./brush";
import css from "./Compare.module.css";
import { CurvesTab } from "./CurvesTab";
import { DifferencesTab } from "./differences/DifferencesTab";
import { MOST_RUNS, useRuns } from "./load";
import { ParallelTab } from "./plots/ParallelTab";
import { ScatterTab } from "./plots/ScatterTab";
import { type CompareProps, show } from "./props";
import { columnsOf, type Run } from "./runs";
import { ImagesTab, PlotsTab } from "./SamplesTab";
import { Side } from "./Side";
import { TableTab } from "./TableTab";
import { type CompareTab, isHidden, parametersOf, parametersOfClearml, TABS, type View, viewOf } from "./view";

const LABELS: Readonly<Record<CompareTab, string>> = {
  curves: "Curves",
  table: "Table",
  differences: "Differences",
  parallel: "Parallel coordinates",
  scatter: "Scatter",
  plots: "Plots",
  images: "Images",
};
const CONTENT: Readonly<Record<CompareTab, (props: CompareProps) => JSX.Element>> = {
  curves: CurvesTab,
  table: TableTab,
  differences: DifferencesTab,
  parallel: ParallelTab,
  scatter: ScatterTab,
  plots: PlotsTab,
  images: ImagesTab,
};

export function Compare({ project, given }: { project: string; given?: string }): JSX.Element {
  useEffect(() => {
    if (given !== undefined) replace(addressOf({ page: "compare", project }, parametersOfClearml(given)));
  }, [project, given]);
  const parameters = query.value;
  const view = useMemo(() => viewOf(parameters), [parameters]);
  const { runs, error, again } = useRuns(project, view.tasks, view.where);
  useTitle(runs ? `${counted(runs.length)} runs – ${LABELS[view.tab]}` : "Compare runs");
  if (given !== undefined) return <Waiting />;
  if (!view.tasks.length && view.where === null) return <NoRuns project={project} />;
  if (error && !runs) return <Failed error={error} again={again} />;
  if (!runs) return <Waiting what="Loading the runs" />;
  if (!runs.length) return <NoRuns project={project} title="None of these runs is there any more" />;
  return <Comparison project={project} view={view} runs={runs} />;
}

function NoRuns({ project, title = "No runs are selected" }: { project: string; title?: string }): JSX.Element {
  return (
    <Empty title={title}>
      <p>Select two or more runs in a table of runs, and choose “Compare”.</p>
      <Link to={project === ALL ? { page: "projects" } : { page: "runs", project }}>To the runs</Link>
    </Empty>
  );
}

function Comparison({ project, view, runs }: { project: string; view: View; runs: readonly Run[] }): JSX.Element {
  const columns = useMemo(() => columnsOf(runs), [runs]);
  const chosen = useMemo(() => chosenRows(runs.length, columns, view.brush), [runs, columns, view.brush]);
  const hidden = useMemo(() => runs.map((run) => isHidden(view.hide, run.id)), [runs, view.hide]);
  const base = Math.max(
    0,
    runs.findIndex((run) => run.id === view.base),
  );
  const shown = useMemo(() => {
    const rows = [...runs.keys()].filter((row) => chosen[row] && !hidden[row]);
    return rows.includes(base) ? [base, ...rows.filter((row) => row !== base)] : rows;
  }, [runs, chosen, hidden, base]);
  const ids = useSame(runs.map((run) => run.id));
  const shade = dark.value ? 1 : 0;
  const look = useMemo(() => looks(ids), [ids]);
  const colours = useMemo(() => new Map([...look].map(([id, { colour }]) => [id, colour[shade]])), [look, shade]);
  const props: CompareProps = { project, view, runs, columns, shown, chosen, hidden, base, looks: look, colours };
  useKeys("Compare", [
    {
      keys: TABS.map((_, n) => String(n + 1)),
      shown: `1–${TABS.length}`,
      does: "Go to a tab",
      run: (key) => go({ page: "compare", project }, onTab(TABS[Number(key) - 1] ?? view.tab)),
    },
  ]);
  const Content = CONTENT[view.tab];
  return (
    <article class={css["page"]}>
      <Side {...props} />
      <div class={css["main"]}>
        <header class={css["head"]}>
          <h1>Compare {counted(runs.length)} runs</h1>
          {view.tasks.length > MOST_RUNS && (
            <span>
              the first {counted(MOST_RUNS)} of {counted(view.tasks.length)}
            </span>
          )}
          {view.brush.length > 0 && (
            <span class={css["chosen"]} role="status">
              {counted(shown.length)} chosen by brushes
              <button type="button" onClick={() => show({ brush: [] }, { push: true })}>
                Clear
              </button>
            </span>
          )}
          <span class={css["space"]} />
          <Views project={project} />
        </header>
        <Tabs
          label="How the runs are compared"
          chosen={view.tab}
          tabs={TABS.map((name) => ({
            name,
            label: LABELS[name],
            to: { page: "compare", project },
            with: onTab(name),
          }))}
        />
        <section role="tabpanel" aria-label={LABELS[view.tab]} class={css["panel"]}>
          <Content key={view.tab} {...props} />
        </section>
      </div>
    </article>
  );
}

/** The parameters of the address as they are, on another tab. */
function onTab(tab: CompareTab): Parameters {
  const all: Record<string, string[]> = {};
  for (const name of new Set(query.value.keys())) all[name] = query.value.getAll(name);
  return { ...all, ...parametersOf({ tab }) };
}
