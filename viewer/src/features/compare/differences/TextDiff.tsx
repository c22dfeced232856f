/** Two texts side by side, line by line. Long stretches that are the same are folded. */

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";

import { counted } from "../../../lib/times";
import { commonEnds, compared, folded, linesOf, type Row } from "./diff";
import css from "./TextDiff.module.css";

interface Side {
  readonly title: string;
  readonly text: string;
}

/** Rows that are shown at once; more come on demand. */
const MOST_ROWS = 1000;

export function TextDiff({ left, right }: { left: Side; right: Side }): JSX.Element {
  const [inLeft, inRight] = useMemo(() => [linesOf(left.text), linesOf(right.text)], [left.text, right.text]);
  const rows = useMemo(() => compared(inLeft, inRight), [inLeft, inRight]);
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const [most, setMost] = useState(MOST_ROWS);
  const parts = useMemo(
    () =>
      folded(rows).flatMap((part) =>
        part.kind === "gap" && opened.has(part.from) ? rows.slice(part.from, part.from + part.count) : [part],
      ),
    [rows, opened],
  );
  return (
    <div class={css["diff"]} tabIndex={0} role="region" aria-label={`${left.title} and ${right.title}, line by line`}>
      <table>
        <colgroup>
          <col style={{ width: "48px" }} />
          <col />
          <col style={{ width: "48px" }} />
          <col />
        </colgroup>
        <thead>
          <tr>
            <th colSpan={2}>{left.title}</th>
            <th colSpan={2}>{right.title}</th>
          </tr>
        </thead>
        <tbody>
          {parts.slice(0, most).map((part) =>
            part.kind === "gap" ? (
              <tr key={`gap ${part.from}`} class={css["gap"]}>
                <td colSpan={4}>
                  <button type="button" onClick={() => setOpened(new Set([...opened, part.from]))}>
                    {counted(part.count)} lines are the same
                  </button>
                </td>
              </tr>
            ) : (
              <Line key={`${part.left} ${part.right}`} row={part} left={inLeft} right={inRight} />
            ),
          )}
          {parts.length > most && (
            <tr class={css["gap"]}>
              <td colSpan={4}>
                <button type="button" onClick={() => setMost(most + MOST_ROWS)}>
                  Show more of {counted(parts.length - most)} lines
                </button>
              </td>
            </tr>
          )}
        </tbody>
      </table>
    </div>
  );
}

function Line({ row, left, right }: { row: Row; left: readonly string[]; right: readonly string[] }): JSX.Element {
  const inLeft = row.left === null ? null : left[row.left]!;
  const inRight = row.right === null ? null : right[row.right]!;
  const changed = row.kind !== "same";
  const [before, after] = inLeft !== null && inRight !== null && changed ? commonEnds(inLeft, inRight) : [0, 0];
  const cell = (text: string | null, other: string | null, name: "gone" | "new"): JSX.Element => (
    <td class={changed && text !== null ? css[name] : undefined}>
      {text === null || !changed || other === null ? text : <Marked text={text} before={before} after={after} />}
    </td>
  );
  return (
    <tr data-kind={row.kind}>
      <td class={css["number"]}>{row.left === null ? "" : row.left + 1}</td>
      {cell(inLeft, inRight, "gone")}
      <td class={css["number"]}>{row.right === null ? "" : row.right + 1}</td>
      {cell(inRight, inLeft, "new")}
    </tr>
  );
}

/** A text whose middle is marked. */
function Marked({ text, before, after }: { text: string; before: number; after: number }): JSX.Element {
  return (
    <>
      {text.slice(0, before)}
      <mark>{text.slice(before, text.length - after)}</mark>
      {text.slice(text.length - after)}
    </>
  );
}
