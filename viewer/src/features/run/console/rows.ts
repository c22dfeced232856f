/** A message as rows of a terminal: its text without escape sequences, in which styles, and where its rows begin. Pure. */

import { type Piece, pieces, type Style } from "./ansi";

/** A message shows no more rows until it is unfolded. */
export const MOST_ROWS = 20;
/** Columns of a row if messages are not wrapped: a row with more characters takes long to lay out. */
export const UNWRAPPED = 2000;

const TAB = 8;
/** Characters of East Asia and most emoji are two columns wide; marks on others take none. */
const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;
// biome-ignore lint/suspicious/noMisleadingCharacterClass: each character of the class is meant alone
const NONE = /[\p{M}\u200b-\u200f\u2060\ufe0f]/u;
const ONE_ROW: readonly number[] = [0];

/** From one place of a text up to, but not including, another. */
export type Span = readonly [from: number, end: number];

/** Text in one style; `found`: a search found it. */
export interface Part extends Piece {
  readonly found: boolean;
}

export class Message {
  /** What is read, with "\n" between its lines. */
  readonly text: string;
  readonly #pieces: readonly Piece[];
  #rows: { readonly columns: number; readonly starts: readonly number[] } | null = null;

  /** `written`: with escape sequences. It begins in a style. */
  constructor(written: string, start: Style) {
    this.#pieces = pieces(written, start).pieces;
    this.text = this.#pieces.map((piece) => piece.text).join("");
  }

  /** How many rows it takes in so many columns, broken anywhere. */
  rows(columns: number): number {
    return this.#starts(columns).length;
  }

  /** The row of a place in the text. */
  rowAt(place: number, columns: number): number {
    return firstBehind(this.#starts(columns), (start) => start > place) - 1;
  }

  /** A row, cut where its style changes, and where what was found begins and ends. */
  row(row: number, columns: number, found: readonly Span[]): Part[] {
    const starts = this.#starts(columns);
    const end = starts[row + 1] ?? this.text.length;
    return this.parts(starts[row] ?? end, this.text[end - 1] === "\n" ? end - 1 : end, found);
  }

  /** The same for the text between two places. `found` ascends. */
  parts(from: number, end: number, found: readonly Span[]): Part[] {
    const parts: Part[] = [];
    let next = firstBehind(found, ([, last]) => last > from);
    let start = 0;
    for (const { text, style } of this.#pieces) {
      const last = Math.min(start + text.length, end);
      for (let place = Math.max(start, from); place < last; ) {
        while (found[next] && found[next]![1] <= place) next++;
        const [first, behind] = found[next] ?? [Infinity, Infinity];
        const is = first <= place;
        const to = Math.min(last, is ? behind : first);
        parts.push({ text: text.slice(place - start, to - start), style, found: is });
        place = to;
      }
      start += text.length;
      if (start >= end) break;
    }
    return parts;
  }

  #starts(columns: number): readonly number[] {
    if (this.#rows?.columns !== columns) this.#rows = { columns, starts: startsOf(this.text, columns) };
    return this.#rows.starts;
  }
}

function startsOf(text: string, columns: number): readonly number[] {
  if (text.length <= columns && /^[ -~]*$/.test(text)) return ONE_ROW;
  const starts: number[] = [];
  for (let from = 0; from <= text.length; ) {
    const found = text.indexOf("\n", from);
    const end = found < 0 ? text.length : found;
    starts.push(from);
    addBroken(starts, text.slice(from, end), from, columns);
    from = end + 1;
  }
  return starts;
}

/** Add where the further rows of a line begin that itself begins at a place. */
function addBroken(starts: number[], line: string, start: number, columns: number): void {
  if (/^[ -~]*$/.test(line)) {
    for (let at = columns; at < line.length; at += columns) starts.push(start + at);
    return;
  }
  let [column, at] = [0, start];
  for (const sign of line) {
    const width =
      sign === "\t" ? TAB - (column % TAB) : sign < "\x7f" ? 1 : WIDE.test(sign) ? 2 : NONE.test(sign) ? 0 : 1;
    if (column + width > columns) {
      starts.push(at);
      column = 0;
    }
    column += width;
    at += sign.length;
  }
}

/** The place of the first element that `isBehind`, as all later ones are; the length if none is. */
function firstBehind<T>(all: readonly T[], isBehind: (one: T) => boolean): number {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isBehind(all[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}
