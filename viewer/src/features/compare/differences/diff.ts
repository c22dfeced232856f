/**
 * Which lines of two texts are the same. Pure.
 *
 * It is Myers' algorithm ("An O(ND) Difference Algorithm and Its Variations", 1986): it goes through the numbers of
 * changes d = 0, 1, 2, …, and keeps for each diagonal k = (place in left) − (place in right) how far d changes lead. The
 * first d that leads to both ends is the least number of changes.
 *
 *     left a b c, right a c d   →   same a, removed b, same c, added d
 */

/** A line of a comparison side by side: its place in each text, from 0; null where that side has none. */
export interface Row {
  readonly kind: "same" | "changed" | "removed" | "added";
  readonly left: number | null;
  readonly right: number | null;
}

/** Lines that are left out, because they are the same: as many as there are, from this row on. */
export interface Gap {
  readonly kind: "gap";
  readonly from: number;
  readonly count: number;
}

/** More changes than these are not looked for: what lies between the equal ends then counts as changed. */
const MOST_CHANGES = 1500;

/** The lines of a text. Its last line end begins no further line. */
export function linesOf(text: string): string[] {
  const lines = text.split(/\r\n|\n|\r/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** All lines of both texts, in order. A removed line and an added one beside it are one "changed". */
export function compared(left: readonly string[], right: readonly string[]): Row[] {
  const rows: Row[] = [];
  let [from, to] = [0, 0];
  const upTo = (i: number, j: number): void => {
    while (from < i || to < j) {
      const kind = from < i && to < j ? "changed" : from < i ? "removed" : "added";
      rows.push({ kind, left: from < i ? from : null, right: to < j ? to : null });
      if (from < i) from++;
      if (to < j) to++;
    }
  };
  for (const [i, j] of equalLines(left, right)) {
    upTo(i, j);
    rows.push({ kind: "same", left: i, right: j });
    [from, to] = [i + 1, j + 1];
  }
  upTo(left.length, right.length);
  return rows;
}

/** The rows that changed with `context` equal ones around them; gaps stand for the others. */
export function folded(rows: readonly Row[], context = 3): (Row | Gap)[] {
  const result: (Row | Gap)[] = [];
  let at = 0;
  while (at < rows.length) {
    let end = at;
    while (end < rows.length && rows[end]!.kind === "same") end++;
    const first = at === 0 ? at : Math.min(at + context, end);
    const last = end === rows.length ? end : Math.max(end - context, first);
    if (last - first > 1) {
      result.push(
        ...rows.slice(at, first),
        { kind: "gap", from: first, count: last - first },
        ...rows.slice(last, end),
      );
    } else result.push(...rows.slice(at, end));
    while (end < rows.length && rows[end]!.kind !== "same") result.push(rows[end++]!);
    at = end;
  }
  return result;
}

/** What two lines begin and end with in common, or two lists of lines: `lr: 0.1` and `lr: 0.01` → 6 and 1 characters. */
export function commonEnds<T extends string | readonly string[]>(
  left: T,
  right: T,
): readonly [before: number, after: number] {
  const most = Math.min(left.length, right.length);
  let before = 0;
  while (before < most && left[before] === right[before]) before++;
  let after = 0;
  while (after < most - before && left.at(-1 - after) === right.at(-1 - after)) after++;
  return [before, after];
}

function equalLines(left: readonly string[], right: readonly string[]): (readonly [number, number])[] {
  const [before, after] = commonEnds(left, right);
  const [inLeft, inRight] = [left.slice(before, left.length - after), right.slice(before, right.length - after)];
  const pairs: (readonly [number, number])[] = [];
  for (let n = 0; n < before; n++) pairs.push([n, n]);
  for (const [i, j] of longestCommon(...numbered(inLeft, inRight))) pairs.push([before + i, before + j]);
  for (let n = after; n > 0; n--) pairs.push([left.length - n, right.length - n]);
  return pairs;
}

/** Each different line as a number, so that comparing two takes no time. */
function numbered(left: readonly string[], right: readonly string[]): [Int32Array, Int32Array] {
  const numbers = new Map<string, number>();
  const number = (line: string): number => {
    const known = numbers.get(line) ?? numbers.size;
    numbers.set(line, known);
    return known;
  };
  return [Int32Array.from(left, number), Int32Array.from(right, number)];
}

/** The places of equal elements in a shortest list of changes; none if there are more than MOST_CHANGES. */
function longestCommon(left: Int32Array, right: Int32Array): (readonly [number, number])[] {
  const [n, m] = [left.length, right.length];
  const bound = Math.min(n + m, MOST_CHANGES);
  const middle = bound + 1;
  const reached = new Int32Array(2 * bound + 3); // by diagonal: the place in left
  const before: Int32Array[] = []; // `reached` before each number of changes, from −d to d
  for (let d = 0; d <= bound; d++) {
    before.push(reached.slice(middle - d - 1, middle + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && reached[middle + k - 1]! < reached[middle + k + 1]!);
      let i = down ? reached[middle + k + 1]! : reached[middle + k - 1]! + 1;
      while (i < n && i - k < m && left[i] === right[i - k]) i++;
      reached[middle + k] = i;
      if (i >= n && i - k >= m) return followedBack(before, n, m);
    }
  }
  return [];
}

function followedBack(before: readonly Int32Array[], n: number, m: number): (readonly [number, number])[] {
  const pairs: (readonly [number, number])[] = [];
  let [i, j] = [n, m];
  for (let d = before.length - 1; d >= 0; d--) {
    const reached = before[d]!;
    const at = (k: number): number => reached[k + d + 1] ?? 0;
    const k = i - j;
    const down = k === -d || (k !== d && at(k - 1) < at(k + 1));
    const [fromI, fromK] = d === 0 ? [0, 0] : down ? [at(k + 1), k + 1] : [at(k - 1), k - 1];
    const start = d === 0 ? 0 : down ? fromI : fromI + 1;
    while (i > start) pairs.push([--i, --j]);
    [i, j] = [fromI, fromI - fromK];
  }
  return pairs.reverse();
}
