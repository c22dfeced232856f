/**
 * A log as a list of rows: all lines, those of a filter, or all but the overtaken states of progress bars. A line has as many
 * rows as its message needs, up to MOST_ROWS, or all of them if it is unfolded.
 *
 * It knows which line a row is, asks for lines when rows are to be seen, and tells when something came. A line has one row
 * until it is here. It touches no element; the list that shows it is told by `Anchor` when rows above the seen ones came or
 * went.
 */

import { ServerError } from "../../../api/client";
import { Pages } from "../../../scroll/pages";
import { PLAIN, pieces, plain, type Style } from "./ansi";
import { type Line, linesAt, linesFrom, longLine, MOST_SHOWN, numberOf, type Wanted } from "./ask";
import { type Finder, NOTHING } from "./finding";
import { Heights } from "./heights";
import { allStates, type BarState, barOf, isOnlyBars, lastStates, overtakenBy } from "./progress";
import { Message, MOST_ROWS, UNWRAPPED } from "./rows";
import { Search } from "./search";

/** A line as it is shown. */
export interface ShownLine extends Line {
  /** The message from its first row that is not empty on, each row in its last state. */
  readonly message: Message;
  /** Earlier states of its rows, which are shown when it is unfolded. */
  readonly states: number;
  /** It is nothing but a progress bar. */
  readonly isBar: boolean;
  /** The style in which it begins: that in which the line of the same worker before it ended. */
  readonly start: Style;
  readonly bar: BarState | null;
}

/** The list that shows the rows. */
export interface Anchor {
  /** The row at its top. */
  readonly top: () => number;
  /** So many rows came above: the same ones shall stay in sight. */
  readonly shift: (rows: number) => void;
}

const PAGE = 200;
/** So many messages are unfolded at most: the one that was unfolded first folds again. */
const MOST_UNFOLDED = 50;

export class Log {
  total = 0;
  error: Error | null = null;
  filter: Search | null = null;
  marks: Search | null = null;
  anchor: Anchor | null = null;
  #folded = true;
  /** Columns of a row. */
  columns = UNWRAPPED;
  /** How many rows each line has. */
  readonly #heights = new Heights();
  /** The same for the places of the lines that a filter shows. */
  #filteredHeights = new Heights();
  /** By state of a bar, the line of the state that it overtook. */
  readonly #overtook = new Map<number, number>();
  /** How many states are folded into a line, as far as that was asked since lines came. */
  readonly #foldedInto = new Map<number, number>();
  /** Overtaken states that are to be seen. */
  readonly #unfolded = new Set<number>();
  /** By position of a line, its whole message, if it is unfolded; null: it was asked for. */
  readonly #whole = new Map<string, Message | null>();
  /** The first lines of pages that came and were not measured yet, and the first places of those of a filter. */
  readonly #came = new Set<number>();
  readonly #filteredCame = new Set<number>();
  readonly #lines: Pages<ShownLine>;
  #filtered: Pages<ShownLine>;
  readonly #closed = new AbortController();
  /** The last question for the number of lines: the next one waits for it. */
  #counted: Promise<boolean> = Promise.resolve(false);

  constructor(
    readonly task: string,
    private readonly changed: () => void,
  ) {
    this.#lines = new Pages<ShownLine>({
      size: PAGE,
      ask: async (first, count, signal) => {
        const lines = shown(await linesFrom(task, first, count, signal));
        // Late lines came since the page was asked for last: they may have moved the line at the top, too.
        const known = lines.map((_, n) => this.#lines.get(first + n));
        if (known.some((line, n) => line && line.position !== lines[n]!.position)) await this.#count(signal);
        if (!signal.aborted) this.#came.add(first);
        return lines;
      },
      changed: (error) => {
        this.error = error ?? null;
        this.#keepTop(() => this.#measure());
        this.changed();
      },
    });
    this.#filtered = this.#pagesOf(null);
  }

  #pagesOf(filter: Search | null): Pages<ShownLine> {
    return new Pages<ShownLine>({
      size: PAGE,
      ask: async (first, count, signal) => {
        const lines = shown(await linesAt(this.task, filter?.numbers.slice(first, first + count) ?? [], signal));
        if (!signal.aborted) this.#filteredCame.add(first);
        return lines;
      },
      changed: (error) => {
        this.error = error ?? null;
        this.#keepTop(() => this.#measureFiltered());
        this.changed();
      },
    });
  }

  /** How many rows there are. */
  get rows(): number {
    return this.filter ? this.#filteredHeights.rows(this.filter.numbers.length) : this.#heights.rows(this.total);
  }

  /** The line of a row, and which one of the line's rows it is, from 0. */
  at(row: number): { line: number; part: number } {
    if (!this.filter) return this.#heights.at(row);
    const { line: place, part } = this.#filteredHeights.at(row);
    return { line: this.filter.numbers[place] ?? this.total, part };
  }

  lineOf(row: number): number {
    return this.at(row).line;
  }

  /** The first row of a line, or of the next line that has one. */
  rowOf(line: number): number {
    return this.filter ? this.#filteredHeights.rowOf(this.filter.placeAfter(line - 1)) : this.#heights.rowOf(line);
  }

  /** How many rows the line of a row has. */
  heightAt(row: number): number {
    const heights = this.filter ? this.#filteredHeights : this.#heights;
    return heights.heightOf(heights.at(row).line);
  }

  /** What a row shows, if it is here. */
  row(row: number): ShownLine | undefined {
    if (this.filter) return this.#filtered.get(this.#filteredHeights.at(row).line);
    return this.#lines.get(this.#heights.at(row).line);
  }

  /** What a line shows: its message, or all of it that can be shown, with all states, if it is unfolded. */
  messageOf(line: ShownLine): Message {
    return this.#whole.get(line.position) ?? line.message;
  }

  isUnfolded(line: ShownLine): boolean {
    return Boolean(this.#whole.get(line.position));
  }

  /** How many rows and states of a folded line are not shown; Infinity: that is known only when all of it is here. */
  hiddenIn(line: ShownLine): number {
    if (this.#whole.has(line.position)) return 0;
    if (line.length > line.msg.length) return Infinity;
    return Math.max(0, line.message.rows(this.columns) - MOST_ROWS) + line.states;
  }

  /** Show all rows of a line. The beginning of a long message is here; the rest of it is asked for. */
  async unfoldLine(line: ShownLine): Promise<void> {
    this.#whole.set(line.position, null);
    for (const position of [...this.#whole.keys()].slice(0, -MOST_UNFOLDED)) this.#whole.delete(position);
    let { msg } = line;
    if (line.length > msg.length) {
      this.changed();
      try {
        const long = await longLine(this.task, line.line, this.#closed.signal);
        if (long?.position !== line.position)
          throw new ServerError(404, "The line has another number by now, or was deleted");
        ({ msg } = long);
      } catch (error) {
        if (!this.#closed.signal.aborted) this.error = error instanceof Error ? error : new Error(String(error));
        return this.foldLine(line);
      }
      if (!this.#whole.has(line.position)) return; // folded meanwhile
    }
    this.#whole.set(line.position, new Message(allStates(msg).replace(/\n+$/, ""), line.start));
    this.#measureAgain();
  }

  foldLine(line: ShownLine): void {
    this.#whole.delete(line.position);
    this.#measureAgain();
  }

  /** The row of what is found first in a line, which is unfolded if need be; null: ask again when something has changed. */
  rowOfHit(number: number, finder: Finder | null): number | null {
    const row = this.reveal(number);
    const line = this.row(row);
    if (line?.line !== number) return null;
    if (this.#whole.get(line.position) === null) return null;
    const message = this.messageOf(line);
    const { spans, done } = finder?.find(message) ?? NOTHING;
    const part = spans[0] ? message.rowAt(spans[0][0], this.columns) : null;
    if (part !== null && part < this.heightAt(row)) return row + part;
    if (part === null && !done) return null;
    if (!finder || this.isUnfolded(line) || !this.hiddenIn(line)) return row;
    void this.unfoldLine(line);
    return null;
  }

  /** How many states of a bar are folded into a row. */
  foldedInto(row: number): number {
    if (this.filter) return 0;
    const line = this.#heights.at(row).line;
    if (!this.#overtook.has(line)) return 0;
    let count = this.#foldedInto.get(line);
    if (count === undefined) this.#foldedInto.set(line, (count = this.#statesIn(line).length));
    return count;
  }

  /** The lines that are folded into a line, the latest first. */
  #statesIn(line: number): number[] {
    const states: number[] = [];
    let state = this.#overtook.get(line);
    while (state !== undefined && !this.#heights.heightOf(state)) {
      states.push(state);
      state = this.#overtook.get(state);
    }
    return states;
  }

  /** Ask for the rows from `first` up to but not including `end`. */
  want(first: number, end: number): void {
    const heights = this.filter ? this.#filteredHeights : this.#heights;
    const pages = this.filter ? this.#filtered : this.#lines;
    const lines = new Set<number>();
    for (let row = first; row < Math.min(end, this.rows); row++) lines.add(heights.at(row).line);
    pages.wantEach(lines);
  }

  /** After an error: ask once more. */
  again(): void {
    this.error = null;
    this.changed();
  }

  /** Show only lines that are wanted; null shows all. */
  setFilter(wanted: Wanted | null): void {
    this.filter?.stop();
    this.#filtered.clear();
    let known = 0;
    const filter = wanted
      ? new Search(this.task, wanted, () => {
          if (this.filter !== filter) return;
          this.#filtered.stale(known);
          known = filter!.numbers.length;
          this.changed();
        })
      : null;
    this.filter = filter;
    this.#filtered = this.#pagesOf(filter);
    this.#filteredHeights = new Heights();
    this.#filteredCame.clear();
    this.changed();
  }

  /** Mark the lines that are wanted; null marks none. */
  setMarks(wanted: Wanted | null): void {
    this.marks?.stop();
    this.marks = wanted ? new Search(this.task, wanted, () => this.changed()) : null;
    this.changed();
  }

  /** Whether overtaken states of progress bars have no row, and how many columns a row has. */
  setShape(folded: boolean, columns: number): void {
    if (folded === this.#folded && columns === this.columns) return;
    this.#folded = folded;
    this.columns = columns;
    this.#measureAgain(() => {
      this.#forgetHeights();
      this.#filteredHeights.clear();
    });
  }

  /** Give all lines that are here their heights anew. */
  #measureAgain(before: () => void = () => undefined): void {
    this.#keepTop(() => {
      before();
      for (let first = 0; first < this.total; first += PAGE) if (this.#lines.get(first)) this.#came.add(first);
      this.#measure();
      const places = this.filter?.numbers.length ?? 0;
      for (let first = 0; first < places; first += PAGE) if (this.#filtered.get(first)) this.#filteredCame.add(first);
      this.#measureFiltered();
    });
    this.changed();
  }

  #forgetHeights(): void {
    this.#heights.clear();
    this.#overtook.clear();
    this.#foldedInto.clear();
    this.#unfolded.clear();
    this.#came.clear();
  }

  /** Show all states of the bar whose last state a row is. That row stays where it is seen. */
  unfold(row: number): void {
    const line = this.#heights.at(row).line;
    this.#show(this.#statesIn(line));
    this.anchor?.shift(this.#heights.rowOf(line) - row);
    this.changed();
  }

  #show(states: readonly number[]): void {
    for (const state of states) {
      this.#unfolded.add(state);
      this.#heights.put(state, 1);
    }
    this.#foldedInto.clear();
  }

  /** The first row of a line: a line that is left out gets one. */
  reveal(line: number): number {
    if (!this.filter && !this.#heights.heightOf(line)) this.#show([line]);
    return this.rowOf(line);
  }

  /** Ask how many lines there are now, and show the new ones. */
  async grow(signal: AbortSignal): Promise<void> {
    const from = Math.min(this.lineOf(Math.floor(this.anchor?.top() ?? 0)), this.total);
    const moved = await this.#count(signal);
    if (!moved) this.#lines.stale(from);
    this.filter?.more();
    this.marks?.more();
    this.changed();
  }

  /** Ask how many lines there are now, and whether the one at the top has another number: then all have one. */
  #count(signal: AbortSignal): Promise<boolean> {
    const counted = this.#counted
      .catch(() => false)
      .then(async () => {
        const row = Math.floor(this.anchor?.top() ?? 0);
        const top = this.row(row);
        const { line, total } = await numberOf(this.task, top ? { position: top.position } : { time: 0 }, signal);
        const before = this.lineOf(row);
        const by = top ? line - before : 0;
        const moved = by !== 0 || total < this.total;
        if (moved) this.#renumber(by, before - row);
        this.total = total;
        if (moved) this.changed();
        return moved;
      });
    this.#counted = counted;
    return counted;
  }

  /**
   * Lines came above the top, or some were deleted: the same ones stay in sight, under new numbers. The line at the top has
   * `behind` more than its row: until lines are measured anew, each has one row.
   */
  #renumber(by: number, behind: number): void {
    this.#forgetHeights();
    if (this.filter) this.setFilter(this.filter.wanted);
    else this.anchor?.shift(by + behind);
    if (this.marks) this.setMarks(this.marks.wanted);
    this.#lines.move(by);
  }

  close(): void {
    this.#closed.abort();
    this.filter?.stop();
    this.marks?.stop();
    this.#lines.clear();
    this.#filtered.clear();
  }

  /** Give the lines of the pages that came their heights, and those of the page before: its bars may be overtaken now. */
  #measure(): void {
    const pages = new Set(
      taken(this.#came, this.#lines).flatMap((page) => (page >= PAGE ? [page - PAGE, page] : [page])),
    );
    this.#foldedInto.clear();
    for (const page of pages) {
      const lines = Array.from({ length: 2 * PAGE }, (_, n) => this.#lines.get(page + n));
      const later = this.#folded
        ? overtakenBy(
            lines.map((line) => line?.bar ?? null),
            PAGE,
          )
        : [];
      lines.slice(0, PAGE).forEach((line, n) => {
        if (!line) return;
        const number = page + n;
        const by = later[n] ?? -1;
        if (by >= 0) this.#overtook.set(page + by, number);
        // What overtook the state may be on a page that was forgotten.
        const isOvertaken = by >= 0 || (line.bar !== null && !lines[PAGE] && !this.#heights.heightOf(number));
        this.#heights.put(number, isOvertaken && !this.#unfolded.has(number) ? 0 : this.#heightOf(line));
      });
    }
  }

  #measureFiltered(): void {
    for (const page of taken(this.#filteredCame, this.#filtered)) {
      for (let place = page; place < page + PAGE; place++) {
        const line = this.#filtered.get(place);
        if (line) this.#filteredHeights.put(place, this.#heightOf(line));
      }
    }
  }

  #heightOf(line: ShownLine): number {
    const whole = this.#whole.get(line.position);
    // One more row says that what is shown is not all.
    if (whole) return whole.rows(this.columns) + (line.length > MOST_SHOWN ? 1 : 0);
    return Math.min(MOST_ROWS, line.message.rows(this.columns));
  }

  /** Change which rows lines have. The row at the top stays there. */
  #keepTop(change: () => void): void {
    if (!this.anchor) return change();
    const heights = this.filter ? this.#filteredHeights : this.#heights;
    const row = Math.floor(this.anchor.top());
    const { line, part } = heights.at(row);
    change();
    const moved = heights.rowOf(line) + Math.min(part, Math.max(0, heights.heightOf(line) - 1)) - row;
    if (moved) this.anchor.shift(moved);
  }
}

/** Take the pages that are here out of those that came: an answer may have come before its rows are here. */
function taken(came: Set<number>, pages: Pages<ShownLine>): number[] {
  const here = [...came].filter((first) => pages.get(first) !== undefined);
  for (const first of here) came.delete(first);
  return here;
}

function shown(lines: readonly Line[]): ShownLine[] {
  const styles = new Map<string, Style>();
  return lines.map((line) => {
    const start = styles.get(line.worker) ?? PLAIN;
    if (line.msg.includes("\x1b")) styles.set(line.worker, pieces(line.msg, start).after);
    const bar = barOf(line.msg);
    return {
      ...{ ...line, start, bar: bar && { ...bar, bar: `${line.worker}|${bar.bar}` }, isBar: isOnlyBars(line.msg) },
      ...foldedMessage(line.msg, start),
    };
  });
}

/** What a folded line shows: its message from its first row that is not empty on, and how many states that leaves out. */
function foldedMessage(msg: string, start: Style): { message: Message; states: number } {
  const rows = lastStates(msg).replace(/\n+$/, "").split("\n");
  const first = Math.max(0, rows.findIndex(isFilled));
  const states = msg.includes("\r")
    ? allStates(msg).split("\n").filter(isFilled).length - rows.filter(isFilled).length
    : 0;
  return { message: new Message(rows.slice(first).join("\n"), start), states };
}

function isFilled(row: string): boolean {
  return plain(row).trim() !== "";
}
