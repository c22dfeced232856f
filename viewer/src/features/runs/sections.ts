/**
 * The runs that the table shows, in sections, each with its rows in pages as they are scrolled to.
 *
 * A question (project, filter, order, columns) has one `Runs`. While a new question is on its way, the page shows the last
 * one's rows.
 */

import { signal } from "@preact/signals";

import { dataAddress, get } from "../../api/client";
import { Pages } from "../../scroll/pages";
import { Layout, type Line } from "./layout";
import { type Condition, type Shown, whereOf } from "./shown";

/** The values of a run by the names of columns. */
export type Row = Readonly<Record<string, unknown>> & {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly project: string | null;
};

/** What a line shows, whichever line it has later: a run in its section, or the heading of the section (null). */
export interface Spot {
  readonly section: string;
  readonly run: string | null;
}

export interface Question {
  readonly project: string;
  readonly shown: Shown;
  /** Names of columns as the server knows them. */
  readonly columns: readonly string[];
}

/** What a table asks for beside the columns that are shown. */
export const ALWAYS = ["id", "name", "status", "project", "tags"];
/** Rows of a page: two windows full. */
const PAGE = 100;

type Value = string | number | null;

export class Section {
  rows = 0;
  /** Whether it is known how many rows there are. */
  counted = false;
  open: boolean;
  readonly pages: Pages<Row>;

  constructor(
    readonly key: string,
    /** null: rows without a heading. */
    readonly title: { readonly text: string; readonly value?: Value } | null,
    readonly conditions: readonly Condition[],
    open: boolean,
    ask: (section: Section, first: number, count: number, signal: AbortSignal) => Promise<readonly Row[]>,
    changed: (error?: Error) => void,
  ) {
    this.open = open;
    this.pages = new Pages<Row>({ size: PAGE, changed, ask: (...asked) => ask(this, ...asked) });
  }
}

export class Runs {
  /** Grows with every change of rows, so that who draws them notices. */
  readonly version = signal(0);
  sections: readonly Section[] = [];
  layout = new Layout([]);
  /** Whether the first rows are here. */
  ready = false;
  error: Error | null = null;
  readonly #stopped = new AbortController();
  readonly #opened: Set<string>;
  #range: [number, number] = [0, PAGE];

  /** `opened`: keys of the groups that are open; it is changed when one is opened or closed. */
  constructor(
    readonly question: Question,
    opened: Set<string>,
  ) {
    this.#opened = opened;
  }

  /** All runs that match, without those that are pinned; groups are not counted twice. */
  get total(): number {
    return this.sections.filter((one) => one.key !== "pinned").reduce((sum, one) => sum + one.rows, 0);
  }

  async start(): Promise<void> {
    try {
      await this.#make();
    } catch (error) {
      this.#failed(error);
    }
  }

  stop(): void {
    this.#stopped.abort();
    for (const section of this.sections) section.pages.clear();
  }

  at(line: number): Line | null {
    return this.layout.at(line);
  }

  row(line: number): Row | undefined {
    const at = this.layout.at(line);
    return at && at.row >= 0 ? this.sections[at.part]?.pages.get(at.row) : undefined;
  }

  /** What a line shows; null if its row is not here. */
  spotAt(line: number): Spot | null {
    const at = this.layout.at(line);
    const section = at && this.sections[at.part];
    if (!section) return null;
    if (at.row < 0) return { section: section.key, run: null };
    const row = section.pages.get(at.row);
    return row ? { section: section.key, run: row.id } : null;
  }

  /** The line of a spot now, which was at a line before; null if its row is not here any more. */
  lineOf({ section: key, run }: Spot, before: number): number | null {
    const there = this.spotAt(before);
    if (there?.section === key && there.run === run) return before;
    const part = this.sections.findIndex((one) => one.key === key);
    const section = this.sections[part];
    const row = run === null ? -1 : section?.open ? section.pages.find(({ id }) => id === run) : null;
    return section && row !== null && row !== undefined ? this.layout.lineOf({ part, row }) : null;
  }

  /** The lines that are seen: their rows are asked for. */
  want(first: number, end: number): void {
    this.#range = [first, end];
    const within = this.layout.within(first, end);
    this.sections.forEach((section, part) => {
      const seen = within.find((one) => one.part === part);
      if (seen) section.pages.want(seen.first, seen.end);
      else if (section.counted) section.pages.want(0, 0);
    });
  }

  toggle(section: Section): void {
    section.open = !section.open;
    if (section.open) this.#opened.add(section.key);
    else this.#opened.delete(section.key);
    this.#arrange();
  }

  /** Something has changed on the server: ask anew for what is seen, and show the old rows until then. */
  async again(): Promise<void> {
    this.error = null;
    if (this.question.shown.group) await this.#count();
    for (const section of this.sections) section.pages.stale();
    this.want(...this.#range);
  }

  /** The ids of all runs in some lines, also of rows that were not scrolled to. */
  async idsWithin(first: number, end: number): Promise<string[]> {
    const ids: string[] = [];
    for (const { part, first: from, end: to } of this.layout.within(first, end)) {
      const section = this.sections[part];
      if (!section) continue;
      const known = Array.from({ length: to - from }, (_, n) => section.pages.get(from + n)?.id);
      if (known.every((id) => id !== undefined)) ids.push(...(known as string[]));
      else ids.push(...(await this.#ids(section.conditions, from, to - from)));
    }
    return ids;
  }

  /** The ids of all runs that match. */
  async allIds(): Promise<string[]> {
    const ids: string[] = [];
    for (let first = 0; ; first += MOST_AT_ONCE) {
      const some = await this.#ids([], first, MOST_AT_ONCE);
      ids.push(...some);
      if (some.length < MOST_AT_ONCE) return ids;
    }
  }

  /** Not given up when other columns are shown meanwhile: a selection that was begun is finished. */
  async #ids(conditions: readonly Condition[], offset: number, limit: number): Promise<string[]> {
    const { signal } = new AbortController();
    const { rows } = await this.#ask(["id"], [...this.#visible(), ...conditions], offset, limit, signal);
    return rows.map((row) => row.id);
  }

  /** Runs that are hidden are left out; those that are pinned stand above. */
  #visible(): Condition[] {
    const { hidden } = this.question.shown;
    return hidden.length ? [["id", "is not", ...hidden]] : [];
  }

  #unpinned(): Condition[] {
    const { pinned } = this.question.shown;
    return [...this.#visible(), ...(pinned.length ? [["id", "is not", ...pinned] as const] : [])];
  }

  async #make(): Promise<void> {
    const { shown } = this.question;
    const sections: Section[] = [];
    if (shown.pinned.length) {
      sections.push(this.#section("pinned", { text: "Pinned" }, [["id", "is", ...shown.pinned]], true));
    }
    if (shown.group) sections.push(...(await this.#grouped()));
    else sections.push(this.#section("all", null, this.#unpinned(), true));
    if (this.#stopped.signal.aborted) return;
    this.error = null;
    this.sections = sections;
    for (const section of sections) if (!section.counted) section.pages.want(0, 1);
    if (shown.group) {
      this.ready = true;
      this.#arrange();
    }
  }

  /** A section for each group that there is now: those that are here already stay, with their rows. */
  async #grouped(): Promise<Section[]> {
    const { shown } = this.question;
    const before = new Map(this.sections.map((section) => [section.key, section]));
    const rest = this.#unpinned();
    return (await this.#groups(rest)).map(({ value, tasks }) => {
      const key = `group ${JSON.stringify(value)}`;
      const inside: Condition[] = [...rest, [shown.group, "is", value]];
      const section = before.get(key) ?? this.#section(key, { text: "", value }, inside, this.#opened.has(key));
      section.rows = tasks;
      section.counted = true;
      return section;
    });
  }

  /** Which groups there are now, and how many runs each has. */
  async #count(): Promise<void> {
    try {
      const groups = await this.#grouped();
      const sections = [...this.sections.filter(({ key }) => key === "pinned"), ...groups];
      for (const gone of this.sections.filter((one) => !sections.includes(one))) gone.pages.clear();
      this.sections = sections;
      this.#arrange();
    } catch (error) {
      this.#failed(error);
    }
  }

  async #groups(conditions: readonly Condition[]): Promise<{ value: Value; tasks: number }[]> {
    const { project, shown } = this.question;
    const query = { by: shown.group, where: whereOf(shown, conditions), recursive: shown.inside ? 1 : 0 };
    const address = dataAddress(`/data/projects/${encodeURIComponent(project)}/groups.json`, query);
    const groups = (await (await get(address, this.#stopped.signal)).json()) as { value: Value; tasks: number }[];
    return groups.toSorted((a, b) => compared(a.value, b.value));
  }

  #section(key: string, title: Section["title"], conditions: readonly Condition[], open: boolean): Section {
    let moved = false;
    const ask = async (
      section: Section,
      first: number,
      count: number,
      signal: AbortSignal,
    ): Promise<readonly Row[]> => {
      const { rows, total } = await this.#ask(this.question.columns, section.conditions, first, count, signal);
      if (section.rows !== total || !section.counted) {
        section.rows = total;
        section.counted = true;
        moved = true;
      }
      return rows;
    };
    return new Section(key, title, conditions, open, ask, (error) => {
      if (error) return this.#failed(error);
      this.ready = true;
      this.error = null;
      if (moved) this.#arrange();
      else this.version.value++;
      moved = false;
    });
  }

  async #ask(
    columns: readonly string[],
    conditions: readonly Condition[],
    offset: number,
    limit: number,
    signal: AbortSignal,
  ): Promise<{ rows: Row[]; total: number }> {
    const { project, shown } = this.question;
    const address = dataAddress(`/data/projects/${encodeURIComponent(project)}/tasks.json`, {
      columns: columns.map((name) => (name.includes(",") ? `"${name}"` : name)).join(","),
      where: whereOf(shown, conditions),
      sort: shown.sort.includes(",") ? `"${shown.sort}"` : shown.sort,
      recursive: shown.inside ? 1 : 0,
      offset,
      limit,
    });
    const answer = await get(address, signal);
    return { rows: (await answer.json()) as Row[], total: Number(answer.headers.get("x-total-count") ?? 0) };
  }

  #arrange(): void {
    if (this.#stopped.signal.aborted) return;
    // Of pinned runs that are all deleted, there is no heading.
    const hasHead = ({ title, key, counted, rows }: Section): boolean =>
      title !== null && !(key === "pinned" && counted && !rows);
    this.layout = new Layout(this.sections.map((one) => ({ hasHead: hasHead(one), open: one.open, rows: one.rows })));
    this.version.value++;
    this.want(...this.#range);
  }

  #failed(error: unknown): void {
    if (this.#stopped.signal.aborted) return;
    this.error = error instanceof Error ? error : new Error(String(error));
    this.version.value++;
  }
}

const MOST_AT_ONCE = 10_000;

/** Numbers by size, also those in texts; no value last. */
function compared(one: Value, other: Value): number {
  if (one === null || other === null) return Number(one === null) - Number(other === null);
  const [a, b] = [Number(one), Number(other)];
  if (one !== "" && other !== "" && !Number.isNaN(a) && !Number.isNaN(b)) return a - b;
  return String(one).localeCompare(String(other), "en", { numeric: true });
}
