/** A row of the console: of a line, or of a part of one that takes several. */

import type { JSX } from "preact";

import { counted } from "../../../lib/times";
import css from "./Console.module.css";
import type { Columns } from "./columns";
import { Whole } from "./Detail";
import { type Finder, NOTHING } from "./finding";
import type { Log, ShownLine } from "./log";
import { Text } from "./Text";
import { clock, kindOf } from "./view";

interface Props {
  readonly index: number;
  readonly task: string;
  readonly log: Log;
  readonly finder: Finder | null;
  readonly columns: Columns;
  /** How many characters the numbers of lines take, and how many of a message fit into a row. */
  readonly digits: number;
  readonly fit: number;
  readonly isChosen: boolean;
  readonly choose: (line: number, event: MouseEvent) => void;
  /** Called with what folds or unfolds the line. */
  readonly fold: (act: () => void) => void;
}

export function Row(props: Props): JSX.Element {
  const { index, log, columns, digits, fit, isChosen, choose } = props;
  const { line: number, part } = log.at(index);
  const line = log.row(index);
  const folded = part ? 0 : log.foldedInto(index);
  return (
    <div
      class={css["line"]}
      data-line={part ? undefined : number + 1}
      data-part={part ? `${number + 1}.${part + 1}` : undefined}
      data-level={line?.isBar ? undefined : kindOf(line?.level ?? null)}
      data-hit={log.marks?.has(number) ? "" : undefined}
      data-chosen={isChosen ? "" : undefined}
      data-wrapped={columns.wrapped ? "" : undefined}
      onClick={(event) => choose(number, event)}
    >
      {columns.numbers && (
        <span class={css["number"]} style={{ width: `${digits}ch` }}>
          {part ? "" : counted(number + 1)}
        </span>
      )}
      {columns.times && <span class={css["time"]}>{line && !part ? clock(line.timestamp) : ""}</span>}
      {folded > 0 && (
        <button
          type="button"
          class={css["folded"]}
          title={`${counted(folded)} earlier states of this bar: show them`}
          onClick={(event) => {
            event.stopPropagation();
            log.unfold(index);
          }}
        >
          +{counted(folded)}
        </button>
      )}
      <bdi class={css["text"]} style={columns.wrapped ? { width: `calc(${fit}ch + 1px)` } : undefined}>
        {line ? <Content {...props} line={line} part={part} /> : <span class={css["coming"]}>…</span>}
      </bdi>
      {line && <Folding {...props} line={line} part={part} />}
    </div>
  );
}

/** The part of a line that a row shows. */
interface PartProps extends Props {
  readonly line: ShownLine;
  readonly part: number;
}

function Content({ task, log, finder, line, part }: PartProps): JSX.Element {
  const message = log.messageOf(line);
  if (part >= message.rows(log.columns)) return <Whole task={task} line={line} />;
  const { spans } = finder?.find(message) ?? NOTHING;
  return <Text parts={message.row(part, log.columns, spans)} />;
}

/** What stands at the right of a line's rows: how to see the rows that are not shown, or to see fewer. */
function Folding({ index, log, finder, line, part, fold }: PartProps): JSX.Element | null {
  function press(event: MouseEvent, act: () => void): void {
    event.stopPropagation(); // a click on the row would choose it
    fold(act);
  }
  const isLast = part === log.heightAt(index) - 1;
  const hidden = isLast ? log.hiddenIn(line) : 0;
  const isEnd = part === 0 || isLast;
  const isOpen = isEnd && log.isUnfolded(line);
  const isPartly = isEnd && (finder?.find(log.messageOf(line)).givenUp ?? false);
  if (!hidden && !isOpen && !isPartly) return null;
  return (
    <span class={css["folding"]}>
      {isPartly && <span title="The search takes too long">Not all of this line was searched</span>}
      {hidden > 0 && (
        <button type="button" class={css["folded"]} onClick={(event) => press(event, () => log.unfoldLine(line))}>
          {hidden === Infinity
            ? `All ${counted(line.length)} characters`
            : `${counted(hidden)} more ${hidden === 1 ? "row" : "rows"}`}
        </button>
      )}
      {isOpen && (
        <button type="button" class={css["folded"]} onClick={(event) => press(event, () => log.foldLine(line))}>
          Fewer rows
        </button>
      )}
    </span>
  );
}
