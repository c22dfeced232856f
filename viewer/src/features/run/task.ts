/** The run that a page shows, as the API describes it, and what its tabs get. */

import type { TaskEx } from "../../api/endpoints";
import type { Part } from "../../api/questions";

/** What every tab needs; a tab asks for the rest itself. */
export const FIELDS = [
  "id",
  "name",
  "type",
  "status",
  "comment",
  "tags",
  "system_tags",
  "created",
  "started",
  "completed",
  "last_update",
  "last_iteration",
  "project.name",
  "user.name",
  "company",
  "parent.name",
  "parent.project",
] as const;
export type Task = Part<TaskEx, (typeof FIELDS)[number]>;

/** Change fields of the run. They show at once, and go back if the server refuses; answers whether it took them. */
type Edit = (fields: Partial<Pick<Task, "name" | "comment">>) => Promise<boolean>;

/** What each tab gets. `changed` asks for the run anew, such as after an edit elsewhere. */
export interface TabProps {
  readonly task: Task;
  readonly changed: () => void;
  readonly edit: Edit;
}
