/** The runs of a comparison: hide and show them, choose the base, remove and add some. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import type { TaskEx } from "../../api/endpoints";
import type { Part } from "../../api/questions";
import { useAsked } from "../../hooks/asked";
import { counted } from "../../lib/times";
import { ALL } from "../../routes";
import { Link } from "../../ui/Link";
import { Menu, type MenuItem } from "../../ui/Menu";
import { type CompareProps, pointed, show } from "./props";
import type { Run } from "./runs";
import css from "./Side.module.css";
import { hiding, type View } from "./view";
import { useWindow } from "./window";

/** Of a row, in pixels. */
const HEIGHT = 30;

export function Side(props: CompareProps): JSX.Element {
  const { project, view, runs, hidden } = props;
  const { element, first, behind } = useWindow(runs.length, HEIGHT);
  const visible = hidden.filter((one) => !one).length;
  const ids = runs.map((run) => run.id);
  return (
    <details class={css["side"]} open={innerWidth >= 900}>
      <summary>{counted(runs.length)} runs</summary>
      <div class={css["tools"]}>
        <span>{visible < runs.length ? `${counted(visible)} shown` : "All shown"}</span>
        <button type="button" disabled={visible === runs.length} onClick={() => show({ hide: [] })}>
          Show all
        </button>
        <button type="button" disabled={visible === 0} onClick={() => show({ hide: hiding(view, ids, true) })}>
          Hide all
        </button>
      </div>
      <div ref={element} class={css["list"]} role="list" aria-label="Runs">
        <div style={{ height: `${HEIGHT * runs.length}px`, paddingTop: `${HEIGHT * first}px` }}>
          {runs.slice(first, behind).map((run, n) => (
            <Entry key={run.id} run={run} row={first + n} ids={ids} {...props} />
          ))}
        </div>
      </div>
      {view.tasks.length > 0 && <Add project={project} ids={view.tasks} />}
    </details>
  );
}

function Entry({
  run,
  row,
  ids,
  ...props
}: CompareProps & { run: Run; row: number; ids: readonly string[] }): JSX.Element {
  const { project, view, hidden, chosen, base, colours } = props;
  const colour = colours.get(run.id);
  const place = { page: "run", project: run.project?.id ?? project, task: run.id, tab: "overview" } as const;
  return (
    <div
      role="listitem"
      aria-setsize={ids.length}
      aria-posinset={row + 1}
      class={css["run"]}
      data-pointed={pointed.value === run.id ? "" : undefined}
      data-hidden={hidden[row] ? "" : undefined}
      data-left-out={hidden[row] || !chosen[row] ? "" : undefined}
      onPointerEnter={() => (pointed.value = run.id)}
      onPointerLeave={() => (pointed.value = null)}
      onFocusCapture={() => (pointed.value = run.id)}
      onBlurCapture={() => (pointed.value = null)}
    >
      <input
        type="checkbox"
        class={css["eye"]}
        style={colour ? `--colour: ${colour}` : ""}
        aria-label={`Show ${run.name}`}
        checked={!hidden[row]}
        onChange={(event) => show({ hide: hiding(view, [run.id], !event.currentTarget.checked) })}
      />
      <Link to={place} class={css["name"] ?? ""} title={run.name}>
        {run.name}
      </Link>
      {row === base && <span class={css["base"]}>base</span>}
      <span class={css["status"]} data-status={run.status} title={run.status.replaceAll("_", " ")} />
      <Menu label={`More about ${run.name}`} class={css["more"] ?? ""} items={actions(run, view, ids, row === base)}>
        ⋯
      </Menu>
    </div>
  );
}

function actions(run: Run, view: View, ids: readonly string[], isBase: boolean): readonly MenuItem[] {
  const others = ids.filter((id) => id !== run.id);
  return [
    {
      label: "Compare the others with this run",
      run: () => show({ base: run.id }, { push: true }),
      why: isBase ? "They are compared with this run already" : null,
    },
    {
      label: "Show only this run",
      run: () => show({ hide: hiding({ ...view, hide: [] }, others, true) }, { push: true }),
    },
    {
      label: "Remove from the comparison",
      run: () => show({ tasks: others, where: null }, { push: true }),
      why: others.length ? null : "It is the only run",
    },
  ];
}

/** A field to find runs by their name or id, and add them. */
function Add({ project, ids }: { project: string; ids: readonly string[] }): JSX.Element {
  const [text, setText] = useState("");
  const wanted = text.trim();
  const asked = useAsked(wanted || null, (signal) => found(project, wanted, signal), { fresh: true });
  const others = (asked.value ?? []).filter((one) => !ids.includes(one.id));
  function add(id: string): void {
    setText("");
    show({ tasks: [...ids, id] }, { push: true });
  }
  return (
    <form
      class={css["add"]}
      onSubmit={(event) => {
        event.preventDefault();
        if (others[0]) add(others[0].id);
      }}
    >
      <input
        type="search"
        placeholder="Add a run by name or id"
        aria-label="Add a run by name or id"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      {wanted && (
        <ul class={css["found"]} aria-label="Runs that can be added">
          {others.map((one) => (
            <li key={one.id}>
              <button type="button" onClick={() => add(one.id)}>
                {one.name} <small>{one.project?.name}</small>
              </button>
            </li>
          ))}
          {asked.value && !others.length && <li>No other run is named so</li>}
        </ul>
      )}
    </form>
  );
}

async function found(
  project: string,
  text: string,
  signal: AbortSignal,
): Promise<readonly Part<TaskEx, "name" | "project.name">[]> {
  const pattern = text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const request = {
    _any_: { fields: ["name", "id"], pattern: `(?i)${pattern}` },
    ...(project !== ALL && { project: [project], include_subprojects: true }),
    only_fields: ["name", "project.name"] as const,
    order_by: ["-last_update"],
    page: 0,
    page_size: 10,
  };
  return (await api("tasks.get_all_ex", request, signal)).tasks;
}
