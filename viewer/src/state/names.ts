/** The names of users and projects, by id: asked for once, and again when an unknown id is seen. */

import { signal } from "@preact/signals";

import { api } from "../api/client";
import { whenBack } from "../api/live";

interface Named {
  readonly id: string;
  readonly name: string;
}

const names = signal<ReadonlyMap<string, string>>(new Map());
/** What is to be asked for, and all that was ever: an id without a name is asked for once. */
let missing: string[] = [];
const known = new Set<string>();
let asking: ReturnType<typeof setTimeout> | undefined;
/** What could not be asked for: it is, when the server is back. */
let failed: string[] = [];
whenBack(() => {
  if (!failed.length) return;
  missing.push(...failed);
  failed = [];
  void ask();
});

/** Names by id. Reading it in a component draws that one again when names come. */
export function namesById(): ReadonlyMap<string, string> {
  return names.value;
}

/** Make sure that these users' and projects' names are asked for. */
export function wantNames(kind: "users" | "projects" | "tasks", ids: Iterable<unknown>): void {
  for (const id of ids) {
    const one = `${kind} ${String(id)}`;
    if (typeof id !== "string" || !id || known.has(one)) continue;
    known.add(one);
    missing.push(one);
  }
  if (!missing.length) return;
  clearTimeout(asking);
  asking = setTimeout(() => void ask(), 20);
}

async function ask(): Promise<void> {
  const asked = missing;
  missing = [];
  for (const kind of ["users", "projects", "tasks"] as const) {
    const ids = asked.filter((one) => one.startsWith(`${kind} `)).map((one) => one.slice(kind.length + 1));
    for (let first = 0; first < ids.length; first += 500) {
      const some = ids.slice(first, first + 500);
      const body = { id: some, only_fields: ["id", "name"], page: 0, page_size: 500 };
      try {
        const answer = await api<Record<string, Named[]>>(`${kind}.get_all`, body);
        names.value = new Map([...names.peek(), ...(answer[kind] ?? []).map(({ id, name }) => [id, name] as const)]);
      } catch {
        // Ids are shown instead of names; the table says what else goes wrong.
        failed.push(...some.map((id) => `${kind} ${id}`));
      }
    }
  }
}
