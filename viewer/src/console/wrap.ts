/** How many rows of a terminal a text takes. Pure. */

import { plain } from "./ansi";

/** A line takes no more rows. So a line that is seen begins among the rows that are drawn (AROUND in `scroll/Rows.tsx`). */
export const MOST_ROWS = 20;

const TAB = 8;
/** Characters of East Asia and most emoji are two columns wide; marks on others take none. */
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;
const NONE = /[\p{M}\u200b-\u200f\u2060\ufe0f]/u;

/** The rows that a text takes in so many columns, broken anywhere; one more than MOST_ROWS if it takes more. */
export function rowsOf(text: string, columns: number): number {
  let rows = 0;
  for (const line of plain(text).split("\n")) {
    rows += /^[ -~]*$/.test(line) ? Math.max(1, Math.ceil(line.length / columns)) : broken(line, columns);
    if (rows > MOST_ROWS) return MOST_ROWS + 1;
  }
  return rows;
}

function broken(line: string, columns: number): number {
  let [rows, column] = [1, 0];
  for (const sign of line) {
    const width = sign === "\t" ? TAB - (column % TAB) : sign < "\x7f" ? 1 : WIDE.test(sign) ? 2 : NONE.test(sign) ? 0 : 1;
    if (column + width > columns) {
      rows++;
      column = 0;
    }
    column += width;
  }
  return rows;
}
