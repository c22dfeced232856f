/** What compiles, and what does not, when the API is asked: `npm run check` is the test. */

import { api } from "../../src/api/client";
import type { TaskEx } from "../../src/api/endpoints";
import type { Part } from "../../src/api/questions";

/** Whether two types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
type Flat<T> = { [K in keyof T]: T[K] };
function same<A, B>(_: Same<Flat<A>, Flat<B>>): void {}

export async function asked(): Promise<void> {
  const fields = ["name", "comment", "project.name", "models.input.name"] as const;
  const [task] = (await api("tasks.get_all_ex", { id: ["t"], only_fields: fields })).tasks;
  const part: Part<TaskEx, (typeof fields)[number]> | undefined = task;
  if (!part) return;
  same<typeof part.id, string>(true);
  same<typeof part.name, string>(true);
  same<NonNullable<typeof part.project>, { readonly id: string; readonly name: string | null }>(true);
  part.comment?.trim();
  part.models?.input?.map(({ name }) => name.trim());
  // @ts-expect-error It may be missing.
  part.comment.trim();
  // @ts-expect-error It was not asked for.
  void part.status;
  // @ts-expect-error Nor was this.
  void part.models?.output;

  const [whole] = (await api("tasks.get_all", { "models.input.model": ["m"] })).tasks;
  whole?.status.trim();
  whole?.project?.trim();
  // @ts-expect-error It may be missing.
  whole?.project.trim();
}

export async function refused(): Promise<void> {
  // @ts-expect-error There is no such endpoint.
  await api("tasks.get_everything", {});
  // @ts-expect-error It needs the task.
  await api("tasks.clone", {});
  // @ts-expect-error It has no such field.
  await api("tasks.clone", { task: "t", name: "n" });
  const body = { task: "t", name: "n" };
  // @ts-expect-error Nor if the body is a variable.
  await api("tasks.clone", body);
  // @ts-expect-error It is a number.
  await api("tasks.get_all", { page: "1" });
  // @ts-expect-error Tasks have no such field.
  await api("tasks.get_all", { only_fields: ["nam"] });
  // @ts-expect-error Projects are ids here: only tasks.get_all_ex answers their names.
  await api("tasks.get_all", { only_fields: ["project.name"] });
}
