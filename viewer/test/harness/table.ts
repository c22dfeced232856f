/** A server with the runs of the project `p`, which it filters, sorts and changes as the real one does. */

import { FakeServer, type Question } from "./server";

export interface Row {
  id: string;
  name: string;
  status: string;
  [column: string]: any;
}

/** The ids are those given, and the names the same, unless something else is said. */
export function rows(...given: (string | (Partial<Row> & { id: string }))[]): Row[] {
  return given.map((one) => {
    const fields = typeof one === "string" ? { id: one } : one;
    return { name: fields.id, status: "created", project: "p", tags: [], system_tags: [], ...fields };
  });
}

export function tableOf(all: Row[]): FakeServer {
  const one = (id: string): Row | undefined => all.find((row) => row.id === id);
  /** Change the runs of a request. */
  const each =
    (change: (row: Row) => void) =>
    ({ body }: Question): object => {
      for (const id of body["ids"]) change(one(id)!);
      return { failed: [], succeeded: body["ids"] };
    };
  return new FakeServer({
    "projects.get_by_id": () => ({ project: { id: "p", name: "P" } }),
    "projects.get_hyper_parameters": () => ({ parameters: [{ section: "Args", name: "lr" }] }),
    "projects.get_unique_metric_variants": () => ({ metrics: [] }),
    "projects.get_task_tags": () => ({ tags: [] }),
    "data/projects/p/tasks.json": ({ query }) => page(sorted(matching(all, query), query), query),
    "data/projects/p/groups.json": ({ query }) => groups(matching(all, query), query.get("by")!),
    "data/views": ({ body }) => (body["address"] ? { id: "v", short: "/s/v", user: "me", ...body } : []),
    "users.get_all": () => ({ users: [] }),
    "queues.get_all": () => ({ queues: [{ id: "q", name: "default" }] }),
    "tasks.get_all": ({ body }) => ({ tasks: body["id"].flatMap((id: string) => one(id) ?? []) }),
    "tasks.clone": ({ body }) => {
      all.push({ ...one(body["task"])!, id: body["new_task_name"], name: body["new_task_name"] });
      return { id: body["new_task_name"] };
    },
    "tasks.update_tags": each((row) => void (row["tags"] = [...row["tags"]])),
    "tasks.archive_many": each((row) => void (row["system_tags"] = ["archived"])),
    "tasks.enqueue_many": each((row) => void (row.status = "queued")),
    "tasks.stop_many": each((row) => void (row.status = "stopped")),
    "tasks.delete_many": each((row) => void all.splice(all.indexOf(row), 1)),
  });
}

type Condition = [column: string, test: string, ...values: unknown[]];

function matching(all: readonly Row[], query: URLSearchParams): Row[] {
  const { conditions = [], search_text: text = "" } = JSON.parse(query.get("where") ?? "{}") as {
    conditions?: Condition[];
    search_text?: string;
  };
  return all.filter((row) => row.name.includes(text) && conditions.every((condition) => holds(row, condition)));
}

function holds(row: Row, [column, test, ...values]: Condition): boolean {
  const value: unknown = row[column] ?? null;
  const is = values.some((one) =>
    Array.isArray(value) ? value.includes(one) || (one === null && !value.length) : value === one,
  );
  if (test === "is") return is;
  if (test === "is not") return !is;
  return Number(value) < Number(values[0]);
}

function sorted(all: readonly Row[], query: URLSearchParams): Row[] {
  const sort = query.get("sort") ?? "name";
  const [column, sign] = sort.startsWith("-") ? [sort.slice(1), -1] : [sort, 1];
  return all.toSorted(
    (a, b) => sign * String(a[column] ?? "").localeCompare(String(b[column] ?? ""), "en", { numeric: true }),
  );
}

function page(all: readonly Row[], query: URLSearchParams): Response {
  const first = Number(query.get("offset") ?? 0);
  const some = all.slice(first, first + Number(query.get("limit") ?? 100));
  return Response.json(some, { headers: { "x-total-count": String(all.length) } });
}

function groups(all: readonly Row[], by: string): { value: unknown; tasks: number }[] {
  const counts = new Map<unknown, number>();
  for (const row of all) {
    const value = Array.isArray(row[by]) ? (row[by][0] ?? null) : (row[by] ?? null);
    counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return [...counts].map(([value, tasks]) => ({ value, tasks }));
}
