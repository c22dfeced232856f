/** One run: its name and status, and the tabs. It asks for what all tabs need; each tab is a component of its own. */

import type { JSX } from "preact";
import { useEffect } from "preact/hooks";

import { api } from "../../api/client";
import { NotThere } from "../../api/errors";
import { follow } from "../../api/live";
import { useAsked } from "../../hooks/asked";
import { useEdits } from "../../hooks/edits";
import { useKeys } from "../../hooks/keys";
import { paced } from "../../hooks/paced";
import { useTitle } from "../../hooks/title";
import { isArchived } from "../../lib/possible";
import { statusText } from "../../lib/status";
import { ALL, TABS, type Tab } from "../../routes";
import { go } from "../../state/address";
import { mayEdit } from "../../state/session";
import { Ago } from "../../ui/Ago";
import { EditableTitle } from "../../ui/EditableTitle";
import heading from "../../ui/Heading.module.css";
import { Link } from "../../ui/Link";
import { lazily } from "../../ui/lazily";
import { Failed, Missing, Waiting } from "../../ui/Notice";
import { Tabs } from "../../ui/Tabs";
import { changeTags, Tags } from "../../ui/Tags";
import { Actions } from "./Actions";
import { ImagesTab } from "./ImagesTab";
import { OverviewTab } from "./OverviewTab";
import { PlotsTab } from "./PlotsTab";
import css from "./Run.module.css";
import { ScalarsTab } from "./ScalarsTab";
import { SystemTab } from "./SystemTab";
import { FIELDS, type TabProps, type Task } from "./task";

const CONTENT: Readonly<Record<Tab, (props: TabProps) => JSX.Element>> = {
  overview: OverviewTab,
  scalars: ScalarsTab,
  system: SystemTab,
  plots: PlotsTab,
  images: ImagesTab,
  console: lazily<TabProps>(async () => (await import("./ConsoleTab")).ConsoleTab),
};
const LABELS: Readonly<Record<Tab, string>> = {
  overview: "Overview",
  scalars: "Scalars",
  system: "System",
  plots: "Plots",
  images: "Images",
  console: "Console",
};

/** Milliseconds between two questions for a run that changes. */
const PAUSE = 1000;

export function Run({ project, task: id, tab }: { project: string; task: string; tab: Tab }): JSX.Element {
  const asked = useAsked(id, (signal) => oneTask(id, signal));
  const { refresh } = asked;
  const isKnown = asked.value !== null;
  useEffect(() => {
    if (!isKnown) return;
    const changed = paced(refresh, PAUSE);
    const end = follow({ tasks: [id] }, changed);
    return () => {
      end();
      changed.stop();
    };
  }, [id, isKnown, refresh]);
  useKeys("Run", [
    {
      keys: TABS.map((_, n) => String(n + 1)),
      shown: `1–${TABS.length}`,
      does: "Go to a tab",
      run: (key) => go({ page: "run", project, task: id, tab: TABS[Number(key) - 1] ?? tab }),
    },
    {
      keys: ["u"],
      does: "Up to the project's runs",
      run: () => go({ page: "runs", project: asked.value?.project?.id ?? project }),
    },
  ]);
  const [task, edit] = useEdits<Task, "name" | "comment" | "tags">(asked, (fields) =>
    api("tasks.update", { task: id, ...fields }),
  );
  useTitle(task ? `${task.name} – ${LABELS[tab]}` : "Run");
  if (asked.error instanceof NotThere) return <Gone id={id} task={asked.value} />;
  if (asked.error && !task) return <Failed error={asked.error} again={asked.again} />;
  if (!task) return <Waiting />;
  const Content = CONTENT[tab];
  const editable = mayEdit(task);
  return (
    <article>
      <header class={heading["head"]}>
        <nav aria-label="Where this run is" class={heading["where"]}>
          <Link to={{ page: "projects" }}>Projects</Link>
          {task.project && (
            <span>
              / <Link to={{ page: "runs", project: task.project.id }}>{task.project.name}</Link>
            </span>
          )}
        </nav>
        <EditableTitle text={task.name} what="name of the run" {...(editable && { save: (name) => edit({ name }) })} />
        <span class={`${heading["state"]} ${css["status"]}`} data-status={task.status}>
          {statusText(task.status)}
        </span>
        {isArchived(task) && <span class={heading["state"]}>archived</span>}
        {(editable || (task.tags?.length ?? 0) > 0) && (
          <Tags
            tags={task.tags ?? []}
            {...(editable && { change: (tags, by) => edit({ tags }, () => changeTags("tasks.update_tags", id, by)) })}
          />
        )}
        <span class={heading["space"]} />
        <Ago time={task.last_update} />
        {editable && <Actions task={task} changed={asked.again} />}
      </header>
      <Tabs
        label="What of the run is shown"
        chosen={tab}
        tabs={TABS.map((name) => ({ name, label: LABELS[name], to: { page: "run", project, task: id, tab: name } }))}
      />
      <section role="tabpanel" aria-label={LABELS[tab]} class={css["panel"]}>
        <Content key={tab} task={task} changed={asked.again} edit={edit} />
      </section>
    </article>
  );
}

/** In the place of a run that there is not. `task`: what was known of it, if it was there a moment ago. */
function Gone({ id, task }: { id: string; task: Task | null }): JSX.Element {
  return (
    <Missing what="run" id={id} name={task?.name}>
      {task?.project && (
        <>
          <Link to={{ page: "runs", project: task.project.id }}>Runs of {task.project.name}</Link> ·{" "}
        </>
      )}
      <Link to={{ page: "runs", project: ALL }}>All runs</Link>
    </Missing>
  );
}

async function oneTask(id: string, signal: AbortSignal): Promise<Task> {
  const { tasks } = await api("tasks.get_all_ex", { id: [id], only_fields: FIELDS, search_hidden: true }, signal);
  const [task] = tasks;
  if (!task) throw new NotThere();
  return task;
}
