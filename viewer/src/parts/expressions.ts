/**
 * Regular expressions that others may have written: they come with the address of a page. Pure.
 *
 * A browser's expressions may take for ever on some texts: `(a+)+$` doubles its time with each further "a". So only those
 * are taken whose time is bounded by a small power of the text's length: nothing that repeats or offers a choice may be
 * repeated as a whole, and few parts may repeat at all. With n characters and k parts that repeat it takes about n^k / k!
 * steps. For example, `loss.*(train|val)` is taken: one part repeats. `(train|val)+` and `(a+)+` are not.
 */

/** What an expression may have: parts that repeat, and parts that may be absent, each of which doubles the time. */
interface Most {
  readonly repeated: number;
  readonly optional: number;
}

/** For names, of which no more than LONGEST_NAME characters are looked at. */
export const OF_NAMES: Most = { repeated: 3, optional: 8 };
/** For lines, of which no more than LONGEST_LINE characters are looked at. */
export const OF_LINES: Most = { repeated: 2, optional: 6 };
export const LONGEST_NAME = 200;
export const LONGEST_LINE = 1000;

/** The expression; null if it is none, or may take too long. */
export function expressionOf(text: string, flags: string, most: Most): RegExp | null {
  try {
    const found = new RegExp(text, flags);
    return isQuick(text, most) ? found : null;
  } catch {
    return null;
  }
}

/** Whether the time of a valid expression is bounded as said above. */
function isQuick(text: string, most: Most): boolean {
  /** Of each group that is open, whether something in it repeats, may be absent, or offers a choice. */
  const groups: boolean[] = [];
  let repeated = 0;
  let optional = 0;
  let closed = false; // whether a group with such a part has just been closed
  for (let at = 0; at < text.length; at++) {
    const sign = text[at]!;
    let varies = false;
    if (sign === "\\") at++;
    else if (sign === "[") at = endOfClass(text, at);
    else if (sign === "(") {
      groups.push(false);
      if (text[at + 1] === "?") at++; // "(?:", "(?=", "(?<name>"
    } else if (sign === ")") varies = groups.pop() ?? false;
    else if (sign === "|") markOpen(groups);
    else if (sign === "*" || sign === "+" || (sign === "{" && /^\{\d+(,\d*)?\}/.test(text.slice(at)))) {
      if (closed || ++repeated > most.repeated) return false;
      if (sign === "{") at = text.indexOf("}", at);
      if (text[at + 1] === "?") at++; // as few as possible
      markOpen(groups);
    } else if (sign === "?") {
      if (++optional > most.optional) return false;
      if (text[at + 1] === "?") at++;
      markOpen(groups);
    }
    if (varies) markOpen(groups);
    closed = varies;
  }
  return true;
}

function markOpen(groups: boolean[]): void {
  if (groups.length) groups[groups.length - 1] = true;
}

function endOfClass(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== "]") at += text[at] === "\\" ? 2 : 1;
  return at;
}
