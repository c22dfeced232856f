/** A model, as the API describes it. */

export interface Named {
  readonly id: string;
  readonly name?: string | null;
  readonly project?: string | null;
}

export interface Model {
  readonly id: string;
  readonly name: string;
  readonly framework?: string;
  readonly uri?: string;
  readonly ready?: boolean;
  readonly comment?: string;
  readonly tags?: readonly string[];
  readonly system_tags?: readonly string[];
  readonly created?: string;
  readonly last_update?: string;
  readonly last_iteration?: number;
  readonly labels?: Readonly<Record<string, number>>;
  readonly metadata?: Readonly<Record<string, { key?: string; value?: string; type?: string }>>;
  readonly design?: unknown;
  readonly company?: { readonly id: string };
  readonly project?: Named | null;
  readonly user?: Named | null;
  readonly task?: Named | null;
  readonly parent?: Named | null;
}

export const FIELDS = [
  ...["name", "framework", "uri", "ready", "comment", "tags", "system_tags", "created", "last_update"],
  ...["last_iteration", "labels", "metadata", "design", "company"],
  ...["project.name", "user.name", "task.name", "task.project", "parent.name", "parent.project"],
];
