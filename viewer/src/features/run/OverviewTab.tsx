/** The tab "Overview" of a run: everything about it but its curves, pictures and lines. */

import type { JSX } from "preact";

import { useAsked } from "../../hooks/asked";
import { useChanges } from "../../hooks/changes";
import { mayEdit } from "../../state/session";
import { Comment } from "../../ui/Comment";
import { Failed, Waiting } from "../../ui/Notice";
import { Configuration } from "./overview/Configuration";
import { details } from "./overview/details";
import { Facts } from "./overview/Facts";
import { Metrics } from "./overview/Metrics";
import { Artifacts, Models } from "./overview/Outputs";
import css from "./overview/Overview.module.css";
import { Parameters } from "./overview/Parameters";
import { Script } from "./overview/Script";
import type { TabProps } from "./task";

/** Milliseconds between two questions for everything about a run that reports: it may have megabytes of texts. */
const PAUSE = 10_000;

export function OverviewTab({ task, edit }: TabProps): JSX.Element {
  const asked = useAsked(`${task.id} ${task.status}`, (signal) => details(task.id, signal));
  useChanges(task.last_update, asked.refresh, PAUSE);
  const found = asked.value;
  return (
    <div class={css["overview"]}>
      <aside class={css["side"]} aria-label="Facts">
        <Facts task={task} details={found} />
      </aside>
      <div class={css["main"]}>
        <Comment comment={task.comment} {...(mayEdit(task) && { save: (comment: string) => edit({ comment }) })} />
        {asked.error && !found && <Failed error={asked.error} again={asked.again} />}
        {!found && !asked.error && <Waiting />}
        {found && (
          <>
            <Parameters task={task} found={found.hyperparams} changed={asked.again} />
            <Metrics task={task} found={found.last_metrics} />
            <Artifacts found={found.execution?.artifacts} />
            <Models found={found.models} />
            <Configuration found={found.configuration} />
            <Script script={found.script} name={task.name} />
          </>
        )}
      </div>
    </div>
  );
}
