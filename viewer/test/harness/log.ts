/** A server with one run that has a log, whose lines it reads, finds and searches as the real one does. */

import { serverOf } from "./run";
import type { FakeServer, Question } from "./server";

export const START = 1_760_000_000_000;

export interface LogLine {
  timestamp: number;
  msg: string;
  level: string | null;
  worker: string;
}

/** Lines with these messages, one each 10 ms; `more`: what else they have. */
export function lines(messages: readonly string[], more: Partial<LogLine> = {}): LogLine[] {
  return messages.map((msg, n) => ({ timestamp: START + 10 * n, msg, level: null, worker: "w", ...more }));
}

export function logOf(all: LogLine[]): FakeServer {
  const { server } = serverOf();
  const shown = (n: number, longest: number): object => {
    const { msg, ...rest } = all[n]!;
    return { ...rest, line: n, position: `at ${n}`, iter: null, msg: msg.slice(0, longest), length: msg.length };
  };
  server.on({
    "data/tasks/t/log.json": ({ query }) => {
      const first = Number(query.get("offset") ?? 0);
      const numbers = query.has("line")
        ? query.getAll("line").map(Number)
        : range(first, first + Number(query.get("limit") ?? 100));
      const some = numbers.filter((n) => n < all.length).map((n) => shown(n, Number(query.get("longest") ?? 2000)));
      return Response.json(some, { headers: { "x-total-count": String(all.length) } });
    },
    "data/tasks/t/log/line": ({ query }) => {
      const position = query.get("position");
      const found = all.findIndex(({ timestamp }) => timestamp >= Number(query.get("time")));
      return { line: position ? Number(position.slice(3)) : found < 0 ? all.length : found, total: all.length };
    },
    "data/tasks/t/log/workers": () => [...new Set(all.map(({ worker }) => worker))],
    "data/tasks/t/log/hits": ({ query }) => {
      const after = Number(query.get("after") ?? -1);
      const found = range(0, all.length).filter((n) => n > after && matches(all[n]!, query));
      return { lines: found, end: all.length, last: String(found.at(-1) ?? after), ended: true };
    },
  });
  return server;
}

function matches({ msg, level, worker }: LogLine, query: Question["query"]): boolean {
  const [levels, workers] = [query.getAll("level"), query.getAll("worker")];
  const regex = query.get("regex");
  return (
    msg.includes(query.get("search") ?? "") &&
    (regex === null || new RegExp(regex).test(msg)) &&
    (!levels.length || levels.includes(level ?? "info")) &&
    (!workers.length || workers.includes(worker))
  );
}

function range(first: number, end: number): number[] {
  return Array.from({ length: Math.max(0, end - first) }, (_, n) => first + n);
}
