/** The names of users and projects, by id: asked for once, and again when an unknown id is seen. */

import { signal } from "@preact/signals";

import { api } from "../api/client";
import { whenBack } from "../api/live";

const KINDS = ["users", "projects", "tasks"] as const;
type Kind = (typeof KINDS)[number];

interface Named {
  readonly id: string;
  readonly name: string;
}

/** Ids that are asked for at once. */
const AT_ONCE = 500;
const NAMES = { only_fields: ["id", "name"], page: 0, page_size: AT_ONCE } as const;
const NAMED: Readonly<Record<Kind, (id: readonly string[]) => Promise<readonly Named[]>>> = {
  users: async (id) => (await api("users.get_all", { id, ...NAMES })).users,
  projects: async (id) => (await api("projects.get_all", { id, ...NAMES })).projects,
  tasks: async (id) => (await api("tasks.get_all", { id, ...NAMES })).tasks,
};

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
export function wantNames(kind: Kind, ids: Iterable<unknown>): void {
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
  for (const kind of KINDS) {
    const ids = asked.filter((one) => one.startsWith(`${kind} `)).map((one) => one.slice(kind.length + 1));
    for (let first = 0; first < ids.length; first += AT_ONCE) {
      const some = ids.slice(first, first + AT_ONCE);
      try {
        const found = await NAMED[kind](some);
        names.value = new Map([...names.peek(), ...found.map(({ id, name }) => [id, name] as const)]);
      } catch {
        // Ids are shown instead of names; the table says what else goes wrong.
        failed.push(...some.map((id) => `${kind} ${id}`));
      }
    }
  }
}
