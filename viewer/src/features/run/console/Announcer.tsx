/** Tells screen readers how many lines came, once in ten seconds. */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { counted } from "../../../lib/times";

export function Announcer({ total }: { total: number }): JSX.Element {
  const [told, setTold] = useState({ total, text: "" });
  const latest = useRef(total);
  latest.current = total;
  const isMore = total > told.total;
  useEffect(() => {
    if (!isMore) return;
    const timer = setTimeout(() => setTold((before) => announced(before.total, latest.current)), 10_000);
    return () => clearTimeout(timer);
  }, [isMore]);
  return (
    <div class="hidden-but-read" role="status">
      {told.text}
    </div>
  );
}

function announced(before: number, total: number): { total: number; text: string } {
  const count = total - before;
  return { total, text: `${counted(count)} new ${count === 1 ? "line" : "lines"} in the console` };
}
