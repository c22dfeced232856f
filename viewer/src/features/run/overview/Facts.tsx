/** When and where a run was, who started it, and what it belongs to. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import { api } from "../../../api/client";
import { useAsked } from "../../../hooks/asked";
import { statusText } from "../../../lib/status";
import { counted, duration } from "../../../lib/times";
import { ALL } from "../../../routes";
import { Ago } from "../../../ui/Ago";
import { Copy } from "../../../ui/Copy";
import { FactList } from "../../../ui/FactList";
import { Link } from "../../../ui/Link";
import { Section } from "../../../ui/Section";
import type { Task } from "../task";
import type { Details } from "./details";
import css from "./Overview.module.css";

export function Facts({ task, details }: { task: Task; details: Details | null }): JSX.Element {
  const queue = details?.execution?.queue;
  return (
    <>
      <Section title="Times">
        <FactList>
          <Fact label="Created">{task.created && <Ago time={task.created} />}</Fact>
          <Fact label="Started">{task.started && <Ago time={task.started} />}</Fact>
          <Fact label="Ended">{task.completed && <Ago time={task.completed} />}</Fact>
          <Fact label="Published">{details?.published && <Ago time={details?.published} />}</Fact>
          <Fact label="Active for">
            {task.started && <Active task={task} seconds={details?.active_duration ?? null} />}
          </Fact>
          <Fact label="Last report">{task.last_update && <Ago time={task.last_update} />}</Fact>
          <Fact label="Iteration">{task.last_iteration ? counted(task.last_iteration) : null}</Fact>
        </FactList>
      </Section>
      {(details?.status_reason || details?.status_message) && (
        <Section title="Status">
          <FactList>
            <Fact label="Reason">{details.status_reason}</Fact>
            <Fact label="Message">{details.status_message}</Fact>
          </FactList>
        </Section>
      )}
      <Section title="About">
        <FactList>
          <Fact label="Type">{task.type.replaceAll("_", " ")}</Fact>
          <Fact label="By">{task.user?.name}</Fact>
          <Fact label="Id">
            <code>{task.id}</code> <Copy text={task.id} what="id" />
          </Fact>
          <Fact label="Queue">{queue?.name ?? queue?.id}</Fact>
          <Fact label="Worker">{details?.last_worker}</Fact>
          <Fact label="Files go to">{details?.output?.destination && <code>{details.output.destination}</code>}</Fact>
          <Fact label="Parent">{task.parent && <RunLink run={task.parent} />}</Fact>
        </FactList>
      </Section>
      <Children task={task.id} />
      <Properties title="Machine and runtime" values={details?.runtime} />
      <Properties title="Container" values={details?.container} />
    </>
  );
}

function Fact({ label, children }: { label: string; children: ComponentChildren }): JSX.Element | null {
  if (children === null || children === undefined || children === "" || children === false) return null;
  return (
    <div>
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** How long the run was in progress; it counts on while it is. `seconds`: what the server has added up. */
function Active({ task, seconds }: { task: Task; seconds: number | null }): JSX.Element {
  const runs = task.status === "in_progress";
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!runs) return;
    const timer = setInterval(() => document.hidden || setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [runs]);
  const started = new Date(task.started ?? 0).getTime();
  const end = runs || !task.completed ? now : new Date(task.completed).getTime();
  const milliseconds = seconds !== null && !runs ? seconds * 1000 : end - started;
  return <span title={`${counted(Math.round(milliseconds / 1000))} seconds`}>{duration(milliseconds)}</span>;
}

/** What a link to a run needs. */
interface Related {
  readonly id: string;
  readonly name: string | null;
  readonly project?: string | null;
}

function RunLink({ run }: { run: Related }): JSX.Element {
  if (run.name === null) return <span class={css["soft"]}>deleted</span>;
  return (
    <Link to={{ page: "run", project: run.project ?? ALL, task: run.id, tab: "overview" }}>{run.name ?? run.id}</Link>
  );
}

const MOST_CHILDREN = 50;

function Children({ task }: { task: string }): JSX.Element | null {
  const asked = useAsked(task, async (signal) => {
    const body = {
      parent: [task],
      only_fields: ["name", "project", "status"],
      order_by: ["-created"],
      search_hidden: true,
      page: 0,
      page_size: MOST_CHILDREN + 1,
    } as const;
    return (await api("tasks.get_all", body, signal)).tasks;
  });
  if (!asked.value?.length) return null;
  const more = asked.value.length > MOST_CHILDREN;
  return (
    <Section title="Children" count={more ? null : asked.value.length}>
      <ul class={css["plain"]}>
        {asked.value.slice(0, MOST_CHILDREN).map((child) => (
          <li key={child.id}>
            <RunLink run={child} /> <span class={css["soft"]}>{statusText(child.status ?? "")}</span>
          </li>
        ))}
      </ul>
      {more && <p class={css["none"]}>The newest {MOST_CHILDREN} are shown.</p>}
    </Section>
  );
}

function Properties({
  title,
  values,
}: {
  title: string;
  values: Readonly<Record<string, unknown>> | undefined;
}): JSX.Element | null {
  const all = Object.entries(values ?? {}).filter(([, value]) => value !== "" && value !== null);
  if (!all.length) return null;
  return (
    <Section title={title}>
      <FactList>
        {all.slice(0, 200).map(([name, value]) => (
          <Fact key={name} label={name.replaceAll("_", " ")}>
            {(typeof value === "string" ? value : JSON.stringify(value)).slice(0, 1000)}
          </Fact>
        ))}
      </FactList>
    </Section>
  );
}
