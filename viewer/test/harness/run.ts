/** A server with one run, which its pages show and change. */

import type { Page } from "./page";
import { FakeServer } from "./server";

export interface Run {
  id: string;
  name: string;
  type: string;
  status: string;
  project: { id: string; name: string };
  [field: string]: any;
}

export const RUN = "/projects/p/tasks/t";
/** What a run has that has a parent. */
export const PARENT = { parent: { id: "parent", name: "the parent", project: "p" } };

/** Parameters of the section Args. */
export function parameters(values: Readonly<Record<string, string>>): Record<string, any> {
  return {
    Args: Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { section: "Args", name, value }])),
  };
}

/** A server with the run `t` in the project `p`, a draft if nothing else is said, and one that may be its parent. */
export function serverOf(fields: Partial<Run> = {}): { server: FakeServer; run: Run } {
  const run: Run = {
    id: "t",
    name: "mine",
    type: "training",
    status: "created",
    project: { id: "p", name: "P" },
    tags: [],
    ...fields,
  };
  const edited = ({ body }: { body: Record<string, any> }): object => {
    const { task: _, ...rest } = body;
    Object.assign(run, rest);
    return { updated: 1 };
  };
  const turned = (status: string) => (): object => {
    run.status = status;
    return { updated: 1 };
  };
  const server: FakeServer = new FakeServer({
    "tasks.get_all_ex": ({ body }) => {
      const [id] = body["id"] ?? [];
      if (id === "t") return { tasks: [structuredClone(run)] };
      return { tasks: id === "parent" ? [{ ...run, id, name: "the parent", parent: null }] : [] };
    },
    "tasks.update": edited,
    "tasks.update_tags": ({ body }) => {
      const { add_tags: add = [], remove_tags: gone = [] } = body;
      run["tags"] = [...run["tags"].filter((tag: string) => !gone.includes(tag)), ...add];
      return { updated: 1 };
    },
    "tasks.edit_hyper_params": ({ body }) => {
      const all = (run["hyperparams"] ??= {});
      for (const one of body["hyperparams"]) (all[one.section] ??= {})[one.name] = one;
      return { updated: 1 };
    },
    "tasks.delete_hyper_params": ({ body }) => {
      for (const { section, name } of body["hyperparams"]) delete run["hyperparams"][section][name];
      return { deleted: 1 };
    },
    "tasks.clone": ({ body }) => {
      Object.assign(run, { name: body["new_task_name"], status: "created" });
      return { id: "t" };
    },
    "tasks.enqueue": turned("queued"),
    "tasks.dequeue": turned("created"),
    "tasks.stop": turned("stopped"),
    "tasks.reset": turned("created"),
    "tasks.publish": turned("published"),
    "tasks.move": ({ body }) => {
      run.project = { id: "other", name: body["project_name"] };
      return {};
    },
    "tasks.archive": () => {
      run["system_tags"] = ["archived"];
      return {};
    },
    "tasks.unarchive_many": () => {
      run["system_tags"] = [];
      return {};
    },
    "tasks.get_all": () => ({ tasks: [] }),
    "queues.get_all": () => ({ queues: [{ id: "q", name: "default" }] }),
    "projects.get_all": () => ({ projects: [] }),
    "projects.get_all_ex": () => ({ projects: [] }),
    "organization.get_tags": () => ({ tags: [] }),
    "models.get_all": () => ({ models: [] }),
    "models.get_all_ex": () => ({ models: [] }),
    "reports.get_all_ex": () => ({ tasks: [] }),
    "events.get_multi_task_metrics": () => ({ metrics: [] }),
  });
  return { server, run };
}

/** Choose an action from the menu of the run. */
export async function choose(page: Page, action: string): Promise<void> {
  await page.click("button", "Actions");
  await page.click("menuitem", action);
}
