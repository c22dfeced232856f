/**
 * Regular expressions that others may have written: they come with the address of a page. Pure.
 *
 * A browser's expressions may take for ever on some texts: `(a+)+$` doubles its time with each further "a". So only those
 * are taken whose time is bounded by a small power of the text's length: nothing that repeats or offers a choice may be
 * repeated as a whole, and few parts may repeat at all. With n characters and k parts that repeat it takes about
 * n^(k+1) / (k+1)! steps. For example, `loss.*(train|val)` is taken: one part repeats. `(train|val)+` and `(a+)+` are not.
 */

/** What an expression has. */
interface Parts {
  /** How many parts repeat. */
  readonly repeated: number;
  /** How many parts may be absent, each of which doubles the time. A choice of four counts as two of them. */
  readonly optional: number;
}

/** What one for names may have, of which no more than LONGEST_NAME characters are looked at. */
const OF_NAMES: Parts = { repeated: 3, optional: 8 };
export const LONGEST_NAME = 200;
/** So many steps take some ten milliseconds. Of a step that is tried again for a part that may be absent, four times. */
const STEPS = 2_000_000;
const TRIED = 4;
/** An expression that takes longer with so few characters of a line is not taken. */
const SHORTEST_SLICE = 64;
const LONGEST_SLICE = 20_000;

/** An expression for lines, and how many characters it may be run over at once. */
export interface LineExpression {
  readonly expression: RegExp;
  readonly slice: number;
}

/** The expression for names, in any case; null if it is none, or may take too long. */
export function nameExpressionOf(text: string): RegExp | null {
  const parts = partsOf(text);
  return parts && parts.repeated <= OF_NAMES.repeated && parts.optional <= OF_NAMES.optional
    ? compiled(text, "i")
    : null;
}

/** The expression for lines; null if it is none, or may take too long. */
export function lineExpressionOf(text: string): LineExpression | null {
  const expression = compiled(text, "g");
  const parts = expression && partsOf(text);
  if (!parts) return null;
  let steps = STEPS / TRIED ** parts.optional;
  for (let n = 2; n <= parts.repeated + 1; n++) steps *= n;
  const slice = Math.min(LONGEST_SLICE, Math.floor(steps ** (1 / (parts.repeated + 1))));
  return slice >= SHORTEST_SLICE ? { expression, slice } : null;
}

function compiled(text: string, flags: string): RegExp | null {
  try {
    return new RegExp(text, flags);
  } catch {
    return null;
  }
}

/** What a valid expression has; null if its time is not bounded as said above. */
function partsOf(text: string): Parts | null {
  /** Of each group that is open, whether something in it repeats, may be absent, or offers a choice, and of how many. */
  const groups: { varies: boolean; choices: number }[] = [];
  let repeated = 0;
  let optional = 0;
  let closed = false; // whether a group with such a part has just been closed
  for (let at = 0; at < text.length; at++) {
    const sign = text[at]!;
    let varies = false;
    if (sign === "\\") at++;
    else if (sign === "[") at = endOfClass(text, at);
    else if (sign === "(") {
      groups.push({ varies: false, choices: 1 });
      if (text[at + 1] === "?") at++; // "(?:", "(?=", "(?<name>"
    } else if (sign === ")") {
      const group = groups.pop();
      varies = group?.varies ?? false;
      optional += Math.log2(group?.choices ?? 1);
    } else if (sign === "|") {
      const group = groups.at(-1);
      if (group) group.choices++;
      markOpen(groups);
    } else if (sign === "*" || sign === "+" || (sign === "{" && /^\{\d+(,\d*)?\}/.test(text.slice(at)))) {
      if (closed) return null;
      repeated++;
      if (sign === "{") at = text.indexOf("}", at);
      if (text[at + 1] === "?") at++; // as few as possible
      markOpen(groups);
    } else if (sign === "?") {
      optional++;
      if (text[at + 1] === "?") at++;
      markOpen(groups);
    }
    if (varies) markOpen(groups);
    closed = varies;
  }
  return { repeated, optional };
}

function markOpen(groups: { varies: boolean }[]): void {
  const group = groups.at(-1);
  if (group) group.varies = true;
}

function endOfClass(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== "]") at += text[at] === "\\" ? 2 : 1;
  return at;
}
