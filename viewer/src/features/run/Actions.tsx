/** The menu of what can be done with a run, and the dialogs that ask before it is done. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useAsked } from "../../hooks/asked";
import { type ActionName, isArchived, whyNot } from "../../lib/possible";
import { ALL } from "../../routes";
import { attempt, say } from "../../state/toasts";
import { Ask } from "../../ui/Ask";
import { Menu, type MenuItem } from "../../ui/Menu";
import { WhatGoes } from "../runs/WhatGoes";
import { ProjectField } from "./ProjectField";
import type { Task } from "./task";

interface Props {
  task: Task;
  changed: () => void;
}

type Asking = "clone" | "enqueue" | "reset" | "publish" | "move" | "delete";

export function Actions({ task, changed }: Props): JSX.Element {
  const [asking, setAsking] = useState<Asking | null>(null);

  async function now(act: () => Promise<unknown>, done: string): Promise<void> {
    if (await attempt(act, done)) changed();
  }
  const restore = (): void => void now(() => api("tasks.unarchive_many", { ids: [task.id] }), "Restored");
  function item(name: ActionName, label: string, run: () => void, more: Partial<MenuItem> = {}): MenuItem {
    return { label, run, why: whyNot(name, task), ...more };
  }
  const archived = isArchived(task);
  const items: (MenuItem | null)[] = [
    item("clone", "Clone…", () => setAsking("clone")),
    item("enqueue", "Enqueue…", () => setAsking("enqueue")),
    item("dequeue", "Dequeue", () => void now(() => api("tasks.dequeue", { task: task.id }), "It is out of the queue")),
    item("abort", "Abort", () => void abort()),
    item("reset", "Reset…", () => setAsking("reset")),
    item("publish", "Publish…", () => setAsking("publish")),
    null,
    item("move", "Move to a project…", () => setAsking("move")),
    archived ? item("restore", "Restore from the archive", restore) : item("archive", "Archive", () => void archive()),
    item("delete", "Delete…", () => setAsking("delete"), { danger: true }),
  ];

  async function abort(): Promise<void> {
    const body = { task: task.id, status_reason: "Aborted in the viewer" };
    await now(() => api("tasks.stop", body), "The run was told to stop");
  }
  async function archive(): Promise<void> {
    if (!(await attempt(() => api("tasks.archive", { tasks: [task.id] })))) return;
    say("Archived", { action: { label: "Undo", run: restore } });
    changed();
  }
  const close = (): void => setAsking(null);
  return (
    <>
      <Menu items={items} label="Actions">
        Actions <span aria-hidden="true">▾</span>
      </Menu>
      {asking === "clone" && <Clone task={task} close={close} />}
      {asking === "enqueue" && <Enqueue task={task} close={close} changed={changed} />}
      {asking === "move" && <Move task={task} close={close} changed={changed} />}
      {asking === "reset" && (
        <Ask
          title="Reset this run?"
          button="Reset"
          danger
          close={close}
          act={() => api("tasks.reset", { task: task.id })}
          done="The run is a draft again"
          after={changed}
        >
          <p>It becomes a draft again. This goes, and can't be brought back:</p>
          <ul>
            <li>all scalars, plots, images and console lines</li>
            <li>
              its artifacts and the models that it made, with their files, except published models and those that other
              runs use
            </li>
            <li>its times, last metrics and what it reported about its machine</li>
          </ul>
          <p>Parameters, configuration, script, comment and tags stay.</p>
        </Ask>
      )}
      {asking === "publish" && (
        <Ask
          title="Publish this run?"
          button="Publish"
          close={close}
          act={() => api("tasks.publish", { task: task.id })}
          done="Published"
          after={changed}
        >
          <p>Its parameters, scalars and outputs can't change from then on, and it can't be reset. That is for ever.</p>
          <p>Its last output model is published, too.</p>
        </Ask>
      )}
      {asking === "delete" && (
        <Ask
          title="Delete this run?"
          button="Delete"
          danger
          close={close}
          act={() => api("tasks.delete", { task: task.id })}
          done={`${task.name} is deleted`}
          to={() => ({ page: "runs", project: task.project?.id ?? ALL })}
        >
          <p>
            <strong>{task.name}</strong> goes, and can't be brought back, with:
          </p>
          <WhatGoes />
        </Ask>
      )}
    </>
  );
}

function Clone({ task, close }: { task: Task; close: () => void }): JSX.Element {
  const [name, setName] = useState(`Clone of ${task.name}`);
  const [project, setProject] = useState(task.project?.name ?? "");
  let id = "";
  return (
    <Ask
      title="Clone this run"
      button="Clone"
      close={close}
      act={async () => {
        const where =
          project === task.project?.name ? { new_task_project: task.project.id } : { new_project_name: project };
        const body = { task: task.id, new_task_name: name.trim(), new_task_parent: task.id, ...(project && where) };
        id = (await api("tasks.clone", body)).id;
      }}
      done="The clone is a draft: change its parameters, then enqueue it."
      to={() => ({ page: "run", project: ALL, task: id, tab: "overview" })}
    >
      <p>A draft with the same script, parameters and configuration, without results.</p>
      <label>
        Name
        <input
          value={name}
          required
          pattern=".*\S.*"
          title="A name needs more than spaces"
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </label>
      <ProjectField value={project} onInput={setProject} />
    </Ask>
  );
}

function Move({ task, close, changed }: { task: Task; close: () => void; changed: () => void }): JSX.Element {
  const [project, setProject] = useState(task.project?.name ?? "");
  return (
    <Ask
      title="Move this run"
      button="Move"
      close={close}
      act={() => api("tasks.move", { ids: [task.id], ...(project ? { project_name: project } : { project: null }) })}
      done={project ? `Moved to ${project}` : "It is in no project now"}
      after={changed}
    >
      <ProjectField value={project} onInput={setProject} />
    </Ask>
  );
}

function Enqueue({ task, close, changed }: { task: Task; close: () => void; changed: () => void }): JSX.Element {
  const [chosen, setChosen] = useState("");
  const asked = useAsked("queues", (signal) => api("queues.get_all", {}, signal));
  const queues = asked.value?.queues ?? [];
  const queue = chosen || (queues.find(({ name }) => name === "default") ?? queues[0])?.id || "";
  const name = queues.find(({ id }) => id === queue)?.name ?? "default";
  return (
    <Ask
      title="Enqueue this run"
      button="Enqueue"
      close={close}
      act={async () => {
        const body = { task: task.id, ...(queue && { queue }), verify_watched_queue: true };
        const { queue_watched: watched } = await api("tasks.enqueue", body);
        if (watched === false)
          say(`No agent watches the queue ${name}: start one with clearml-agent daemon --queue ${name}`);
      }}
      done={`It waits in the queue ${name}`}
      after={changed}
    >
      <p>An agent that watches the queue takes the run from it, and runs it.</p>
      <label>
        Queue
        <select value={queue} onChange={(event) => setChosen(event.currentTarget.value)}>
          {queues.map((one) => (
            <option key={one.id} value={one.id}>
              {one.display_name || one.name}
              {one.entries?.length ? ` (${one.entries.length} waiting)` : ""}
            </option>
          ))}
          {!queues.length && <option value="">default</option>}
        </select>
      </label>
    </Ask>
  );
}
