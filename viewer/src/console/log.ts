/**
 * A log as a list of rows: all lines, those of a filter, or all but the overtaken states of progress bars.
 *
 * It knows which line a row is, asks for lines when rows are to be seen, and tells when something came. It touches no
 * element; the list that shows it is told by `Anchor` when rows above the seen ones came or went.
 */

import { Pages } from "../scroll/pages";
import { pieces, plain, PLAIN, type Style } from "./ansi";
import { linesAt, linesFrom, numberOf, type Line, type Wanted } from "./ask";
import { Folds } from "./folds";
import { barOf, isOnlyBars, lastStates, overtaken, type BarState } from "./progress";
import { Search } from "./search";

/** A line as it is shown. */
export interface ShownLine extends Line {
  /** The first of the message's lines that is not empty, its carriage returns folded. */
  readonly text: string;
  /** Lines of the message after that one. */
  readonly more: number;
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

export class Log {
  total = 0;
  error: Error | null = null;
  filter: Search | null = null;
  marks: Search | null = null;
  anchor: Anchor | null = null;
  #folded = true;
  readonly #folds = new Folds();
  /** Lines of bars that are to be seen. */
  #unfolded: [first: number, end: number][] = [];
  /** The first lines of pages that came and were not folded yet. */
  readonly #came = new Set<number>();
  readonly #lines: Pages<ShownLine>;
  #filtered: Pages<ShownLine>;
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
        this.#keepTop(() => this.#fold());
        this.changed();
      },
    });
    this.#filtered = this.#pagesOf(null);
  }

  #pagesOf(filter: Search | null): Pages<ShownLine> {
    return new Pages<ShownLine>({
      size: PAGE,
      ask: async (first, count, signal) =>
        shown(await linesAt(this.task, filter?.numbers.slice(first, first + count) ?? [], signal)),
      changed: (error) => {
        this.error = error ?? null;
        this.changed();
      },
    });
  }

  /** How many rows there are. */
  get rows(): number {
    return this.filter ? this.filter.numbers.length : this.total - this.#folds.hidden;
  }

  lineOf(row: number): number {
    return this.filter ? (this.filter.numbers[row] ?? this.total) : this.#folds.lineOf(row);
  }

  /** The row of a line, or of the next line that has one. */
  rowOf(line: number): number {
    return this.filter ? this.filter.placeAfter(line - 1) : this.#folds.rowOf(line);
  }

  /** What a row shows, if it is here. */
  row(row: number): ShownLine | undefined {
    return this.filter ? this.#filtered.get(row) : this.#lines.get(this.#folds.lineOf(row));
  }

  /** How many states of a bar are folded into a row. */
  foldedInto(row: number): number {
    return this.filter ? 0 : this.#folds.foldedBefore(this.#folds.lineOf(row));
  }

  /** Ask for the rows from `first` up to but not including `end`. */
  want(first: number, end: number): void {
    if (this.filter) return this.#filtered.want(first, Math.min(end, this.rows));
    const lines: number[] = [];
    for (let row = first; row < end; row++) lines.push(this.#folds.lineOf(row));
    this.#lines.wantEach(lines.filter((line) => line < this.total));
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
    this.changed();
  }

  /** Mark the lines that are wanted; null marks none. */
  setMarks(wanted: Wanted | null): void {
    this.marks?.stop();
    this.marks = wanted ? new Search(this.task, wanted, () => this.changed()) : null;
    this.changed();
  }

  setFolded(folded: boolean): void {
    if (folded === this.#folded) return;
    this.#folded = folded;
    this.#keepTop(() => {
      this.#folds.clear();
      this.#unfolded = [];
      if (folded) for (let first = 0; first < this.total; first += PAGE) if (this.#lines.get(first)) this.#came.add(first);
      this.#fold();
    });
    this.changed();
  }

  /** Show all states of the bar whose last state a row is, or the states around a line that is left out. */
  unfold(row: number): void {
    const line = this.#folds.lineOf(row);
    const count = this.#folds.foldedBefore(line);
    if (!count) return;
    this.#unfolded.push([line - count, line]);
    this.#folds.set(line - count, Array<boolean>(count).fill(false));
    this.changed();
  }

  /** The number of a line that has a row: a line that is left out gets one. */
  reveal(line: number): number {
    if (!this.filter && this.#folds.lineOf(this.#folds.rowOf(line)) !== line) this.unfold(this.#folds.rowOf(line));
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
        const by = top ? line - this.lineOf(row) : 0;
        const moved = by !== 0 || total < this.total;
        if (moved) this.#renumber(by);
        this.total = total;
        if (moved) this.changed();
        return moved;
      });
    this.#counted = counted;
    return counted;
  }

  /** Lines came above the top, or some were deleted: the same ones stay in sight, under new numbers. */
  #renumber(by: number): void {
    this.#folds.clear();
    this.#unfolded = [];
    this.#came.clear();
    if (this.filter) this.setFilter(this.filter.wanted);
    else this.anchor?.shift(by);
    if (this.marks) this.setMarks(this.marks.wanted);
    this.#lines.move(by);
  }

  close(): void {
    this.filter?.stop();
    this.marks?.stop();
    this.#lines.clear();
    this.#filtered.clear();
  }

  /** Fold the bars of the pages that came, also across their edges. */
  #fold(): void {
    const pages = [...this.#came];
    this.#came.clear();
    if (!this.#folded) return;
    for (const page of pages) {
      const before = Math.max(0, page - 1);
      const bars: (BarState | null)[] = [];
      for (let line = before; line <= page + PAGE; line++) bars.push(this.#lines.get(line)?.bar ?? null);
      const hidden = overtaken(bars).map((is, n) => is && !this.#isUnfolded(before + n));
      this.#folds.set(before, hidden.slice(0, PAGE + page - before));
    }
  }

  #isUnfolded(line: number): boolean {
    return this.#unfolded.some(([first, end]) => line >= first && line < end);
  }

  /** Change which lines have rows. The line at the top stays there. */
  #keepTop(change: () => void): void {
    if (this.filter || !this.anchor) return change();
    const row = Math.floor(this.anchor.top());
    const line = this.#folds.lineOf(row);
    change();
    const moved = this.#folds.rowOf(line) - row;
    if (moved) this.anchor.shift(moved);
  }
}

function shown(lines: readonly Line[]): ShownLine[] {
  const styles = new Map<string, Style>();
  return lines.map((line) => {
    const texts = lastStates(line.msg).replace(/\n+$/, "").split("\n");
    const first = Math.max(0, texts.findIndex((one) => plain(one).trim()));
    const start = styles.get(line.worker) ?? PLAIN;
    if (line.msg.includes("\x1b")) styles.set(line.worker, pieces(line.msg, start).after);
    return {
      ...{ ...line, start, bar: barOf(line.msg) },
      ...{ text: texts[first]!, more: texts.length - 1 - first, isBar: isOnlyBars(line.msg) },
    };
  });
}
