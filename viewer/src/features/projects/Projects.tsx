/** All projects as a tree, and what ran last. A server without runs says how to report the first one. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { data } from "../../api/client";
import { follow } from "../../api/live";
import { useAsked } from "../../hooks/asked";
import { useKeys } from "../../hooks/keys";
import { useSame } from "../../hooks/same";
import { useTitle } from "../../hooks/title";
import { counted } from "../../lib/times";
import { ALL } from "../../routes";
import { adjust, go, query } from "../../state/address";
import { namesById, wantNames } from "../../state/names";
import { remember, remembered } from "../../state/session";
import { Ago } from "../../ui/Ago";
import { Link } from "../../ui/Link";
import { Failed, Waiting } from "../../ui/Notice";
import { Status } from "../../ui/Status";
import { FirstRun } from "./FirstRun";
import css from "./Projects.module.css";
import { linesOf, type Project, type ProjectRow, treeOf } from "./projectTree";

interface Recent {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly project: string | null;
  readonly last_update: string | null;
}

interface All {
  readonly tops: readonly Project[];
  readonly recent: readonly Recent[];
  readonly count: number;
}

const RECENT = 12;
/** Fewer projects are all seen at once, until the user closes some. */
const FEW = 40;
/** Milliseconds after which counts are asked for anew; a newcomer waits for the first run. */
const OFTEN = 15_000;
const OFTEN_AT_FIRST = 3000;

export function Projects(): JSX.Element {
  const asked = useAsked("projects", everything);
  const { refresh } = asked;
  const recent = asked.value?.recent ?? [];
  const often = recent.length ? OFTEN : OFTEN_AT_FIRST;
  useTitle("Projects");
  useEffect(() => {
    const timer = setInterval(() => !document.hidden && refresh(), often);
    return () => clearInterval(timer);
  }, [often, refresh]);
  const running = useSame(recent.filter((run) => run.status === "in_progress").map((run) => run.id));
  useEffect(() => {
    if (!running.length) return;
    const began = Date.now();
    return follow({ tasks: running }, (change) => {
      if ((change.event === "status" || change.event === "gone") && Date.now() - began > 1500) refresh();
    });
  }, [running, refresh]);
  if (asked.error && !asked.value) return <Failed error={asked.error} again={asked.again} />;
  if (!asked.value) return <Waiting />;
  if (!asked.value.recent.length) return <FirstRun hasProjects={asked.value.count > 0} />;
  return (
    <div class={css["page"]}>
      <Tree {...asked.value} />
      <aside aria-label="Latest runs">
        <h2>Latest runs</h2>
        <Latest runs={recent} />
        <p>
          <Link to={{ page: "runs", project: ALL }}>All runs</Link>
        </p>
      </aside>
    </div>
  );
}

async function everything(signal: AbortSignal): Promise<All> {
  const where = JSON.stringify({ conditions: [["status", "is", "in_progress"]] });
  const tasks = { columns: "id,name,status,project,last_update", sort: "-last_update", limit: RECENT };
  const [rows, running, recent] = await Promise.all([
    data<ProjectRow[]>("/data/projects.json", {}, signal),
    data<{ value: string | null; tasks: number }[]>(
      `/data/projects/${ALL}/groups.json`,
      { by: "project", where },
      signal,
    ),
    data<Recent[]>(`/data/projects/${ALL}/tasks.json`, tasks, signal),
  ]);
  return {
    tops: treeOf(rows, new Map(running.map(({ value, tasks: count }) => [value ?? "", count]))),
    recent,
    count: rows.length,
  };
}

function Tree({ tops, count }: All): JSX.Element {
  const [closed, setClosed] = useState<Readonly<Record<string, boolean>>>(() => remembered("projects", {}));
  const [active, setActive] = useState(-1);
  const table = useRef<HTMLTableElement>(null);
  const search = query.value.get("q") ?? "";
  const isOpen = (project: Project): boolean => closed[project.id] ?? count <= FEW;
  const lines = linesOf(tops, isOpen, search);

  function toggle(project: Project, open = !isOpen(project)): void {
    const next = { ...closed, [project.id]: open };
    setClosed(next);
    remember("projects", next);
  }

  function move(to: number): void {
    const line = Math.max(0, Math.min(lines.length - 1, to));
    setActive(line);
    table.current?.querySelectorAll<HTMLElement>("tbody a")[line]?.focus();
  }

  const chosen = lines[active];
  useKeys("Projects", [
    { keys: ["j", "ArrowDown"], shown: "j ↓", does: "Next project", run: () => move(active + 1) },
    { keys: ["k", "ArrowUp"], shown: "k ↑", does: "Project before", run: () => move(active - 1) },
    { keys: ["ArrowRight"], does: "Show what lies in it", run: () => chosen && toggle(chosen, true) },
    { keys: ["ArrowLeft"], does: "Hide what lies in it", run: () => chosen && toggle(chosen, false) },
    {
      keys: ["o"],
      shown: "o Enter",
      does: "Show its runs",
      run: () => chosen && go({ page: "runs", project: chosen.id }),
    },
  ]);

  return (
    <section aria-label="Projects">
      <header class={css["head"]}>
        <h1>Projects</h1>
        <input
          type="search"
          placeholder="Search projects…"
          aria-label="Search projects"
          value={search}
          onInput={(event) => adjust({ q: event.currentTarget.value })}
        />
        <nav class={css["kinds"]} aria-label="Other kinds">
          <Link to={{ page: "datasets" }}>Data sets</Link>
          <Link to={{ page: "pipelines" }}>Pipelines</Link>
        </nav>
      </header>
      <table ref={table} role="treegrid" aria-label="Projects" class={css["tree"]}>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col" class={css["number"]}>
              Running
            </th>
            <th scope="col" class={css["number"]}>
              Runs
            </th>
            <th scope="col" class={css["time"]}>
              Last activity
            </th>
          </tr>
        </thead>
        <tbody>
          {lines.map((project, line) => {
            const has = project.inside.length > 0;
            const open = Boolean(search) || isOpen(project);
            return (
              <tr
                key={project.id}
                role="row"
                aria-level={project.level}
                aria-expanded={has ? open : undefined}
                data-active={line === active ? "" : undefined}
              >
                <td role="gridcell">
                  <span class={css["name"]} style={{ "--level": project.level - 1 }}>
                    {has ? (
                      <button
                        type="button"
                        class={css["arrow"]}
                        data-open={open ? "" : undefined}
                        aria-label={`${open ? "Hide" : "Show"} what lies in ${project.title}`}
                        onClick={() => toggle(project)}
                      >
                        ▸
                      </button>
                    ) : (
                      <span class={css["arrow"]} />
                    )}
                    <Link to={{ page: "runs", project: project.id }} title={project.name}>
                      {project.title}
                    </Link>
                  </span>
                </td>
                <td role="gridcell" class={css["number"]}>
                  {project.running > 0 && <span class={css["running"]}>{counted(project.running)}</span>}
                </td>
                <td role="gridcell" class={css["number"]}>
                  {counted(project.runs)}
                </td>
                <td role="gridcell" class={css["time"]}>
                  <Ago time={project.last || null} />
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {!lines.length && <p class={css["none"]}>No project has “{search}” in its name.</p>}
    </section>
  );
}

function Latest({ runs }: { runs: readonly Recent[] }): JSX.Element {
  const names = namesById();
  useEffect(
    () =>
      wantNames(
        "projects",
        runs.map((run) => run.project),
      ),
    [runs],
  );
  return (
    <ul class={css["latest"]}>
      {runs.map((run) => (
        <li key={run.id}>
          <Link to={{ page: "run", project: run.project ?? ALL, task: run.id, tab: "overview" }} title={run.name}>
            {run.name || "(no name)"}
          </Link>
          <span class={css["about"]}>
            <Status status={run.status} />
            <span title={names.get(run.project ?? "")}>{names.get(run.project ?? "")}</span>
            <Ago time={run.last_update} />
          </span>
        </li>
      ))}
    </ul>
  );
}
