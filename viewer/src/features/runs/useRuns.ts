/** The runs of the question that the address asks, and of the one before until the new one's are here. */

import { useEffect, useRef, useState } from "preact/hooks";

import { type Change, follow, whenBack } from "../../api/live";
import { useSame } from "../../hooks/same";
import { ALL } from "../../routes";
import { CURVE } from "./columns";
import { ALWAYS, type Question, type Row, Runs } from "./sections";
import type { Shown } from "./shown";

export function useRuns(project: string, shown: Shown): { runs: Runs | null; waiting: boolean } {
  const opened = useRef(new Set<string>());
  const current = useRef<Runs | null>(null);
  const [runs, setRuns] = useState<Runs | null>(null);
  const columns = [...new Set([...ALWAYS, ...shown.columns.filter((name) => !name.startsWith(CURVE))])];
  // Colours and the curve change nothing in what is asked.
  const question: Question = useSame({ project, columns, shown: { ...shown, columns: [], colours: {}, curve: "" } });
  useEffect(() => {
    const next = new Runs(question, opened.current);
    const unsubscribe = next.version.subscribe(() => {
      if (current.current === next || !(next.ready || next.error)) return;
      current.current?.stop();
      current.current = next;
      setRuns(next);
    });
    void next.start();
    return () => {
      unsubscribe();
      if (current.current !== next) next.stop();
    };
  }, [question]);
  useEffect(() => () => current.current?.stop(), []);
  return { runs, waiting: runs?.question !== question };
}

/** Milliseconds between two questions for what has changed. */
const OFTEN = 1000;
/** Milliseconds between two questions for runs that came, where the stream can't tell: in very many runs. */
const SELDOM = 15_000;
/** The server tells of all runs of a project up to 5,000; above, of those that are seen. */
const MOST_FOLLOWED = 4500;
const MOST_SEEN = 200;

/** Keep the rows as they are on the server. `grown` is called for each run whose curves have grown. */
export function useLive(runs: Runs | null, seen: readonly Row[], grown: (id: string) => void): void {
  const project = runs?.question.project ?? ALL;
  const whole = runs !== null && project !== ALL && runs.total <= MOST_FOLLOWED;
  const followed = whole ? seen.filter((row) => row.project !== project) : seen;
  const tasks = useSame(followed.slice(0, MOST_SEEN).map((row) => row.id));
  const isThere = runs !== null;
  const latest = useRef({ runs, seen, grown });
  latest.current = { runs, seen, grown };
  useEffect(() => {
    if (!isThere) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let last = Date.now();
    function later(): void {
      timer ??= setTimeout(() => {
        timer = undefined;
        last = Date.now();
        void latest.current.runs?.again();
      }, OFTEN);
    }
    function changed(change: Change): void {
      if (change.event === "log" || change.event === "samples") return;
      if (change.event === "scalars") latest.current.grown(change.task);
      // The stream begins with the statuses of all that are followed: most are shown already.
      if (change.event === "status" && isShown(change, latest.current.seen)) return;
      later();
    }
    const stop = follow({ tasks, ...(whole && { projects: [project] }) }, changed);
    const end = whenBack(() => {
      const { runs: shown } = latest.current;
      void (shown?.ready ? shown.again() : shown?.start());
    });
    const seldom = setInterval(() => {
      if (!document.hidden && Date.now() - last > SELDOM) {
        last = Date.now();
        void latest.current.runs?.again();
      }
    }, SELDOM);
    return () => {
      stop();
      end();
      clearTimeout(timer);
      clearInterval(seldom);
    };
  }, [isThere, project, whole, tasks]);
}

/** Whether the rows say already what a status tells. */
function isShown(told: Extract<Change, { event: "status" }>, seen: readonly Row[]): boolean {
  const row = seen.find((one) => one.id === told.task);
  const iteration = row?.["last_iteration"] ?? null;
  const sameIteration = iteration === null || told.last_iteration === undefined || iteration === told.last_iteration;
  return row !== undefined && row.status === told.status && row.name === told.name && sameIteration;
}
