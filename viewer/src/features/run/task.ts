/** The run that a page shows, as the API describes it, and what its tabs get. */

/** What every tab needs; a tab asks for the rest itself. */
export interface Task {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly status: string;
  readonly comment?: string;
  readonly tags?: readonly string[];
  readonly system_tags?: readonly string[];
  readonly created?: string;
  readonly started?: string;
  readonly completed?: string;
  readonly last_update?: string;
  readonly last_iteration?: number;
  readonly company?: { readonly id: string };
  readonly project?: { readonly id: string; readonly name: string };
  readonly user?: { readonly id: string; readonly name: string };
  readonly parent?: { readonly id: string; readonly name?: string | null; readonly project?: string | null };
}

export const FIELDS = [
  ...["id", "name", "type", "status", "comment", "tags", "system_tags", "created", "started", "completed"],
  ...["last_update", "last_iteration", "project.name", "user.name", "company", "parent.name", "parent.project"],
];

/** Change fields of the run. They show at once, and go back if the server refuses; answers whether it took them. */
type Edit = (fields: Partial<Pick<Task, "name" | "comment">>) => Promise<boolean>;

/** What each tab gets. `changed` asks for the run anew, such as after an edit elsewhere. */
export interface TabProps {
  readonly task: Task;
  readonly changed: () => void;
  readonly edit: Edit;
}
