/** The tree of projects, made of their names: "a/b" lies in "a". What a project has counts for those above it, too. Pure. */

export interface ProjectRow {
  readonly id: string;
  readonly name: string;
  readonly tasks: number;
  readonly last_update: string | null;
}

export interface Project {
  readonly id: string;
  /** The whole name. */
  readonly name: string;
  /** The last part of the name. */
  readonly title: string;
  readonly level: number;
  runs: number;
  running: number;
  /** When something in it was last changed, in ms; 0 if that is not known. */
  last: number;
  readonly inside: Project[];
}

/** The projects at the top, by name. `running`: how many runs of a project are running, by its id. */
export function treeOf(rows: readonly ProjectRow[], running: ReadonlyMap<string, number>): Project[] {
  const tops: Project[] = [];
  const byName = new Map<string, Project>();
  for (const row of rows.toSorted((a, b) => compared(a.name, b.name))) {
    const above = aboveOf(row.name, byName);
    const project: Project = {
      id: row.id,
      name: row.name,
      title: above ? row.name.slice(above.name.length + 1) : row.name,
      level: above ? above.level + 1 : 1,
      runs: row.tasks,
      running: running.get(row.id) ?? 0,
      last: row.last_update ? Date.parse(row.last_update) || 0 : 0,
      inside: [],
    };
    byName.set(row.name, project);
    (above ? above.inside : tops).push(project);
  }
  tops.forEach(addUp);
  return tops;
}

/** By the parts of the names, so that "a/b" comes right behind "a", before "a b". */
function compared(one: string, other: string): number {
  const [a, b] = [one.split("/"), other.split("/")];
  for (let n = 0; n < Math.min(a.length, b.length); n++) {
    const order = (a[n] ?? "").localeCompare(b[n] ?? "", "en", { numeric: true });
    if (order) return order;
  }
  return a.length - b.length || (one < other ? -1 : 1);
}

/** The nearest project that this one lies in, among those that are known. */
function aboveOf(name: string, known: ReadonlyMap<string, Project>): Project | null {
  for (let cut = name.lastIndexOf("/"); cut > 0; cut = name.lastIndexOf("/", cut - 1)) {
    const above = known.get(name.slice(0, cut));
    if (above) return above;
  }
  return null;
}

function addUp(project: Project): void {
  for (const one of project.inside) {
    addUp(one);
    project.runs += one.runs;
    project.running += one.running;
    project.last = Math.max(project.last, one.last);
  }
}

/** The projects that are seen, one below the other. With a search, those that have it in their names, and those above. */
export function linesOf(tops: readonly Project[], isOpen: (project: Project) => boolean, search: string): Project[] {
  const wanted = search.trim().toLowerCase();
  const lines: Project[] = [];
  function add(project: Project): boolean {
    const at = lines.length;
    lines.push(project);
    let inside = false;
    if (wanted || isOpen(project)) for (const one of project.inside) inside = add(one) || inside;
    const matches = !wanted || inside || project.name.toLowerCase().includes(wanted);
    if (!matches) lines.length = at;
    return matches;
  }
  tops.forEach(add);
  return lines;
}
