/** The log of a run: scrolled freely, followed at its end, searched as a whole. */

import type { JSX } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { follow, whenBack } from "../../../api/live";
import { useKeys } from "../../../hooks/keys";
import { useSame } from "../../../hooks/same";
import { counted } from "../../../lib/times";
import type { Place } from "../../../routes";
import { Rows, type RowsHandle } from "../../../scroll/Rows";
import { adjust, query } from "../../../state/address";
import { remember, remembered } from "../../../state/session";
import { attempt } from "../../../state/toasts";
import { Empty, Failed, Waiting } from "../../../ui/Notice";
import { Announcer } from "./Announcer";
import { numberOf } from "./ask";
import css from "./Console.module.css";
import { ConsoleBar } from "./ConsoleBar";
import type { Columns } from "./columns";
import { copyLines } from "./copying";
import { Detail } from "./Detail";
import { Finder } from "./finding";
import { useFit } from "./fit";
import { Log } from "./log";
import { Marks } from "./Marks";
import { Row } from "./Row";
import { UNWRAPPED } from "./rows";
import { filterOf, marksOf, viewOf } from "./view";

const ROW = 18;
/** On a narrower page, such as on a phone, the times would take the place of the messages. */
const NARROW = 700;
export function Console({ task, scalars }: { task: string; scalars: Place }): JSX.Element {
  const [version, setVersion] = useState(0);
  const log = useMemo(() => new Log(task, () => setVersion((before) => before + 1)), [task]);
  const list = useRef<RowsHandle>(null);
  /** Whether the end is followed, as it is until somebody scrolls away from it. */
  const following = useRef(true);
  /** Where to go as soon as the rows are there. */
  const target = useRef<{ line: number; at: "top" | "middle" } | null>(null);
  /** The line of a hit whose row is to be seen as soon as it is found. */
  const seeking = useRef<number | null>(null);
  const [ready, setReady] = useState(false);
  const [failed, setFailed] = useState<Error | null>(null);
  const [chosen, setChosen] = useState<{ first: number; last: number } | null>(null);
  /** Lines that were there when the end was seen last. */
  const [seen, setSeen] = useState(0);
  const [columns, setColumns] = useState<Columns>(() => ({
    ...{ numbers: true, times: innerWidth >= NARROW, folded: true, wrapped: false },
    ...remembered<Partial<Columns>>("console", {}),
  }));

  const view = viewOf(query.value);
  const filter = useSame(filterOf(view));
  const marks = useSame(marksOf(view));
  const finder = useMemo(
    () => (view.text ? new Finder(view.text, view.isRegex, () => setVersion((before) => before + 1)) : null),
    [view.text, view.isRegex],
  );

  useEffect(() => {
    const stop = new AbortController();
    const start = placeIn(query.peek());
    log.anchor = { top: () => list.current?.first() ?? 0, shift: (rows) => list.current?.shift(rows) };
    let begun = false;
    function begin(): void {
      numberOf(task, { time: start?.time ?? 0 }, stop.signal).then(
        ({ line, total }) => {
          begun = true;
          log.total = total;
          if (start) {
            const wanted = Math.min(start.line ?? line, Math.max(0, total - 1));
            following.current = false;
            target.current = { line: wanted, at: start.time === undefined ? "top" : "middle" };
            if (start.time !== undefined) setChosen({ first: wanted, last: wanted });
          }
          setSeen(total);
          setFailed(null);
          setReady(true);
        },
        (error: Error) => stop.signal.aborted || setFailed(error),
      );
    }
    begin();
    let again = false;
    let asking = false;
    async function grow(): Promise<void> {
      again = true;
      if (asking) return;
      asking = true;
      while (again && !stop.signal.aborted) {
        again = false;
        await log.grow(stop.signal).catch(() => undefined); // the next change asks again
        await new Promise((done) => setTimeout(done, 250));
      }
      asking = false;
    }
    const leave = follow({ tasks: [task] }, (change) => {
      if (change.event === "log" || change.event === "reset") void grow();
    });
    const end = whenBack(() => {
      if (!begun) return begin();
      log.again();
      void grow();
    });
    return () => {
      stop.abort();
      leave();
      end();
      log.close();
    };
  }, [task, log]);

  const digits = Math.max(3, counted(log.total).length);
  const [fit, frame] = useFit(columns, digits);
  useEffect(
    () => log.setShape(columns.folded, columns.wrapped ? fit : UNWRAPPED),
    [log, columns.folded, columns.wrapped, fit],
  );
  const lineAtTop = useCallback(() => log.lineOf(Math.floor(list.current?.first() ?? 0)), [log]);
  useEffect(() => {
    const line = lineAtTop();
    log.setFilter(filter);
    if (log.total && !following.current) target.current = { line, at: "top" };
  }, [log, filter, lineAtTop]);
  useEffect(() => log.setMarks(marks), [log, marks]);

  const rows = log.rows;
  useLayoutEffect(() => {
    if (!ready || !list.current) return;
    if (target.current && (!log.filter || log.filter.end > target.current.line || log.filter.done)) {
      list.current.show(log.rowOf(target.current.line), target.current.at);
      target.current = null;
    } else if (following.current) list.current.show(rows - 1);
    if (seeking.current === null || target.current) return;
    const row = log.rowOfHit(seeking.current, finder);
    if (row !== null || log.error) seeking.current = null;
    if (row !== null) list.current.show(row, "middle");
  }, [ready, log, rows, finder, version]);
  useEffect(() => {
    if (following.current) setSeen(log.total);
  }, [log.total, version]);

  function onMove(): void {
    const handle = list.current;
    if (!handle || target.current) return;
    seeking.current = null; // somebody has scrolled on
    following.current = handle.atEnd();
    if (following.current) setSeen(log.total);
    adjust({ line: following.current ? null : lineAtTop() + 1, time: null });
  }

  function show(line: number, at: "top" | "middle" = "middle"): void {
    following.current = false;
    seeking.current = null;
    const row = log.reveal(line);
    target.current = { line: log.lineOf(row), at };
    setVersion((before) => before + 1);
  }

  function toEnd(): void {
    following.current = true;
    target.current = seeking.current = null;
    list.current?.show(rows - 1);
    setSeen(log.total);
    adjust({ line: null, time: null });
  }

  const hits = log.marks ?? (view.text && view.only ? log.filter : null);
  function step(by: 1 | -1): void {
    if (!hits?.numbers.length) return;
    const from = chosen?.first ?? (by > 0 ? lineAtTop() - 1 : lineAtTop() + (list.current?.fit() ?? 0));
    const count = hits.numbers.length;
    const next = by > 0 ? hits.placeAfter(from) : hits.placeAfter(from - 1) - 1;
    const line = hits.numbers[(next + count) % count]!;
    setChosen({ first: line, last: line });
    show(line);
    seeking.current = line;
  }

  function move(by: 1 | -1): void {
    const from = chosen ? log.rowOf(chosen.last) : null;
    const row = from === null ? Math.floor(list.current?.first() ?? 0) : from + (by > 0 ? log.heightAt(from) : by);
    const line = log.lineOf(Math.min(Math.max(row, 0), Math.max(0, rows - 1)));
    following.current = false;
    setChosen({ first: line, last: line });
    list.current?.show(log.rowOf(line), "nearest");
  }

  async function jump(time: number): Promise<void> {
    const { line, total } = await numberOf(task, { time });
    const wanted = Math.min(line, Math.max(0, total - 1));
    setChosen({ first: wanted, last: wanted });
    show(wanted);
  }

  async function copyChosen(): Promise<void> {
    if (chosen) await copyLines(task, log, Math.min(chosen.first, chosen.last), Math.max(chosen.first, chosen.last));
  }

  function choose(line: number, event: MouseEvent): void {
    if (event.shiftKey && chosen) getSelection()?.removeAllRanges(); // the browser marks text from the click before to this one
    if (getSelection()?.isCollapsed === false) return; // somebody marks text
    if (event.shiftKey && chosen) setChosen({ first: chosen.first, last: line });
    else setChosen(chosen?.first === line && chosen.last === line ? null : { first: line, last: line });
  }

  useKeys("Console", [
    { keys: ["/"], does: "Search in the log", run: () => document.getElementById("console-search")?.focus() },
    { keys: ["n"], does: "Next hit", run: () => step(1) },
    { keys: ["N"], does: "Hit before", run: () => step(-1) },
    { keys: ["j"], does: "Next line", run: () => move(1) },
    { keys: ["k"], does: "Line before", run: () => move(-1) },
    { keys: ["g g"], does: "First line", run: () => show(0, "top") },
    { keys: ["G"], does: "Last line, and follow", run: toEnd },
    { keys: ["c"], does: "Copy the chosen lines", run: () => void attempt(copyChosen) },
    { keys: ["Escape"], does: "Close the line", run: () => setChosen(null) },
  ]);

  const hitRows = useMemo(
    () => (log.marks ? log.marks.numbers.map((line) => log.rowOf(line)) : []),
    [log, log.marks, log.marks?.numbers.length, rows],
  );

  if (failed) return <Failed error={failed} />;
  if (!ready) return <Waiting what="Asking for the log" />;
  if (!log.total) {
    return (
      <Empty title="This run has written no line yet">
        <p>What it prints and logs shows here at once.</p>
      </Empty>
    );
  }
  const [firstChosen, lastChosen] = chosen
    ? [Math.min(chosen.first, chosen.last), Math.max(chosen.first, chosen.last)]
    : [-1, -2];
  const fresh = log.total - seen;
  const detail = chosen && chosen.first === chosen.last ? log.row(log.rowOf(chosen.first)) : undefined;

  function fold(act: () => void): void {
    following.current = false;
    act();
  }
  const isChosen = (line: number): boolean => line >= firstChosen && line <= lastChosen;
  const row = (index: number): JSX.Element => (
    <Row
      key={index}
      isChosen={isChosen(log.at(index).line)}
      {...{ index, task, log, finder, columns, digits, fit, choose, fold }}
    />
  );

  return (
    <div class={css["console"]}>
      <ConsoleBar
        task={task}
        view={view}
        filter={filter}
        log={log}
        hits={hits}
        unmarked={finder?.isUnable ?? false}
        chosen={chosen?.first ?? null}
        columns={columns}
        onColumns={(next) => {
          remember("console", next);
          setColumns(next);
        }}
        onStep={step}
        onJump={(time) => void attempt(() => jump(time))}
        onTop={() => show(log.lineOf(0), "top")}
        onEnd={toEnd}
        onCopy={chosen ? () => void attempt(copyChosen) : null}
      />
      {log.error && <Failed error={log.error} again={() => log.again()} />}
      <div class={css["window"]} ref={frame}>
        <Rows
          count={rows}
          rowHeight={ROW}
          row={row}
          label="Console"
          role="log"
          attributes={{ "aria-live": "off" }}
          class={css["rows"]}
          handle={list}
          onRange={(first, end) => log.error || log.want(first, end)}
          onMove={onMove}
        />
        {log.marks && (
          <Marks
            rows={hitRows}
            of={rows}
            current={chosen ? log.rowOf(chosen.first) : null}
            searched={log.marks.done ? 1 : log.marks.end / Math.max(1, log.total)}
            onGo={(index) => show(log.lineOf(index))}
          />
        )}
        {fresh > 0 && !following.current && (
          <button type="button" class={`primary ${css["fresh"]}`} onClick={toEnd}>
            {counted(fresh)} new {fresh === 1 ? "line" : "lines"} ↓
          </button>
        )}
        {!rows && log.filter && (
          <p class={css["none"]} role="status">
            {log.filter.done ? "No line is like that" : "Searching…"}
          </p>
        )}
      </div>
      {detail && <Detail task={task} line={detail} scalars={scalars} finder={finder} onClose={() => setChosen(null)} />}
      <Announcer total={log.total} />
    </div>
  );
}

/** Where the address says to begin: at a line, or at a time. */
function placeIn(query: URLSearchParams): { line?: number; time?: number } | null {
  const time = Number(query.get("time") ?? NaN);
  if (Number.isSafeInteger(time)) return { time };
  const line = Number(query.get("line") ?? NaN);
  return Number.isSafeInteger(line) && line > 0 ? { line: line - 1 } : null;
}
