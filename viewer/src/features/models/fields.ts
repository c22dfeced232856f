/** A model, as its page and the list show it. */

import type { ModelEx } from "../../api/endpoints";
import type { Part } from "../../api/questions";

export const FIELDS = [
  "name",
  "framework",
  "uri",
  "ready",
  "comment",
  "tags",
  "system_tags",
  "created",
  "last_update",
  "last_iteration",
  "labels",
  "metadata",
  "design",
  "company",
  "project.name",
  "user.name",
  "task.name",
  "task.project",
  "parent.name",
  "parent.project",
] as const;
export type Model = Part<ModelEx, (typeof FIELDS)[number]>;
