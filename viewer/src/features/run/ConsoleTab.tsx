/** The tab "Console" of a run. */

import type { JSX } from "preact";

import { ALL } from "../../routes";
import { Console } from "./console/Console";
import type { TabProps } from "./task";

export function ConsoleTab({ task }: TabProps): JSX.Element {
  return (
    <Console
      key={task.id}
      task={task.id}
      scalars={{ page: "run", project: task.project?.id ?? ALL, task: task.id, tab: "scalars" }}
    />
  );
}
