/** The bar above a console: the search, filters, jumps, and what is shown. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { wordsOf } from "../../../api/errors";
import { useAsked } from "../../../hooks/asked";
import { useTyped } from "../../../hooks/typed";
import { counted } from "../../../lib/times";
import { adjust } from "../../../state/address";
import { Menu } from "../../../ui/Menu";
import { SearchField } from "../../../ui/SearchField";
import { downloadOf, type Wanted, workersOf } from "./ask";
import css from "./Console.module.css";
import type { Columns } from "./columns";
import type { Log } from "./log";
import type { Search } from "./search";
import { type ConsoleView, LEVELS } from "./view";

interface Props {
  readonly task: string;
  readonly view: ConsoleView;
  readonly filter: Wanted | null;
  readonly log: Log;
  readonly hits: Search | null;
  /** Whether lines can't be marked where the search found something. */
  readonly unmarked: boolean;
  readonly chosen: number | null;
  readonly columns: Columns;
  readonly onColumns: (columns: Columns) => void;
  readonly onStep: (by: 1 | -1) => void;
  readonly onJump: (time: number) => void;
  readonly onTop: () => void;
  readonly onEnd: () => void;
  readonly onCopy: (() => void) | null;
}

export function ConsoleBar(props: Props): JSX.Element {
  const { task, view, filter, log, columns } = props;
  const { typed, type, tell } = useTyped(view.text, (q) => adjust({ q }));
  const workers = useAsked(`${task}`, (signal) => workersOf(task, signal));
  const known = [...new Set([...(workers.value ?? []), ...view.workers])];

  return (
    <div class={css["bar"]} role="toolbar" aria-label="Console">
      <div class={css["search"]} id="console-search-box">
        <SearchField
          label="Search in the log"
          value={typed}
          field={(element) => {
            if (element) element.id = "console-search";
          }}
          onInput={type}
          onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            event.preventDefault();
            if (typed !== view.text) tell();
            else props.onStep(event.shiftKey ? -1 : 1);
          }}
        />
        <button
          type="button"
          aria-pressed={view.isRegex}
          title="Search by a regular expression"
          onClick={() => adjust({ regex: !view.isRegex })}
        >
          .*
        </button>
        <button
          type="button"
          aria-pressed={view.only}
          title="Show only the lines that are found"
          onClick={() => adjust({ only: !view.only })}
        >
          Only hits
        </button>
      </div>
      {view.text && <Count {...props} />}
      <select aria-label="Levels" value={view.level} onChange={(event) => adjust({ level: event.currentTarget.value })}>
        {Object.entries(LEVELS).map(([name, { label }]) => (
          <option key={name} value={name}>
            {label}
          </option>
        ))}
      </select>
      {known.length > 1 && (
        <select
          aria-label="Workers"
          value={view.workers[0] ?? ""}
          onChange={(event) => adjust({ worker: event.currentTarget.value })}
        >
          <option value="">All workers</option>
          {known.map((name) => (
            <option key={name} value={name}>
              {name || "(no name)"}
            </option>
          ))}
        </select>
      )}
      <JumpTo onJump={props.onJump} />
      <span class={css["space"]} />
      <Total log={log} filter={filter} />
      <button type="button" title="First line" aria-label="First line" onClick={props.onTop}>
        ↑
      </button>
      <button type="button" title="Last line, and follow" aria-label="Last line" onClick={props.onEnd}>
        ↓
      </button>
      <Menu
        label="What the console shows"
        items={[
          {
            label: "Line numbers",
            checked: columns.numbers,
            run: () => props.onColumns({ ...columns, numbers: !columns.numbers }),
          },
          { label: "Times", checked: columns.times, run: () => props.onColumns({ ...columns, times: !columns.times }) },
          {
            label: "Fold progress bars",
            checked: columns.folded,
            run: () => props.onColumns({ ...columns, folded: !columns.folded }),
          },
          {
            label: "Wrap lines",
            checked: columns.wrapped,
            run: () => props.onColumns({ ...columns, wrapped: !columns.wrapped }),
          },
          null,
          {
            label: "Copy the chosen lines",
            key: "c",
            why: props.onCopy ? null : "Click a line first; Shift and a click choose up to another",
            run: () => props.onCopy?.(),
          },
          { label: "Download the whole log", run: () => download(downloadOf(task, null), task) },
          ...(filter
            ? [{ label: "Download the shown lines", run: () => download(downloadOf(task, filter), task) }]
            : []),
        ]}
      >
        ⋯
      </Menu>
    </div>
  );
}

/** "3 of 1,204 hits", with the buttons to step. */
function Count({ log, hits, unmarked, chosen, onStep }: Props): JSX.Element {
  if (!hits) return <span />;
  const count = hits.numbers.length;
  const place = chosen === null || !hits.has(chosen) ? null : hits.placeAfter(chosen);
  const part = Math.floor((100 * hits.end) / Math.max(1, log.total));
  return (
    <span class={css["count"]} role="status">
      {hits.error ? (
        <span class={css["wrong"]}>{wordsOf(hits.error)}</span>
      ) : (
        <span>
          {place === null ? "" : `${counted(place)} of `}
          {counted(count)}
          {hits.full ? "+" : ""} {count === 1 ? "hit" : "hits"}
          {!hits.done && ` · ${part} %`}
          {unmarked && (
            <span title="A browser might take for ever for this expression, or can't read it">
              {" "}
              · not marked in their rows
            </span>
          )}
        </span>
      )}
      <button type="button" aria-label="Hit before" title="Hit before (N)" disabled={!count} onClick={() => onStep(-1)}>
        ‹
      </button>
      <button type="button" aria-label="Next hit" title="Next hit (n)" disabled={!count} onClick={() => onStep(1)}>
        ›
      </button>
    </span>
  );
}

function Total({ log, filter }: Pick<Props, "log" | "filter">): JSX.Element {
  const part =
    log.filter && !log.filter.done ? ` · ${Math.floor((100 * log.filter.end) / Math.max(1, log.total))} %` : "";
  const lines = log.total === 1 ? "line" : "lines";
  const shown = filter && log.filter ? `${counted(log.filter.numbers.length)} of ` : "";
  const bars = filter?.withoutBars ? " Progress bars are left out." : "";
  return (
    <span class={css["total"]} title={`What was written at once is one line, also if it has breaks in it.${bars}`}>
      {shown}
      {counted(log.total)} {lines}
      {part}
    </span>
  );
}

/** A field for a time, in the browser's zone. */
function JumpTo({ onJump }: Pick<Props, "onJump">): JSX.Element {
  const [time, setTime] = useState("");
  return (
    <form
      class={css["jump"]}
      onSubmit={(event) => {
        event.preventDefault();
        const wanted = new Date(time).getTime();
        if (!Number.isNaN(wanted)) onJump(wanted);
      }}
    >
      <input
        type="datetime-local"
        step="1"
        aria-label="Jump to a time"
        title="Jump to a time"
        value={time}
        onInput={(event) => setTime(event.currentTarget.value)}
      />
      <button type="submit" disabled={!time}>
        Go
      </button>
    </form>
  );
}

function download(address: string, task: string): void {
  const link = document.createElement("a");
  link.href = address;
  link.download = `${task}.log.txt`;
  link.click();
}
