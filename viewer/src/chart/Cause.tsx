/** What a click on a point offers: which point it is, and what else happened then. */

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import { wordsOf } from "../api/errors";
import { useAsked } from "../hooks/asked";
import { counted, short } from "../lib/times";
import { ALL } from "../routes";
import { Link } from "../ui/Link";
import css from "./Cause.module.css";
import type { Picked } from "./drawer";
import { locate } from "./locate";
import type { Axis } from "./source";

interface Props {
  readonly picked: Picked;
  readonly task: string;
  readonly axis: Axis;
  readonly close: () => void;
}

export function Cause({ picked, task, axis, close }: Props): JSX.Element {
  const { line, at, end, left, top } = picked;
  const element = useRef<HTMLDivElement>(null);
  const asked = useAsked(
    `${task}/${line.key}/${at}/${end}/${line.points.x[at]}`,
    (signal) => locate(task, line, at, end, axis, signal),
    {
      fresh: true,
    },
  );
  useEffect(() => {
    const { style } = element.current!;
    style.left = `${Math.max(8, Math.min(left + 8, innerWidth - 260))}px`;
    style.top = `${Math.max(8, Math.min(top + 8, innerHeight - 200))}px`;
    element.current!.showPopover();
  }, [left, top]);
  const found = asked.value;
  const run = { page: "run", project: ALL, task } as const;
  return (
    <div
      ref={element}
      popover="auto"
      role="dialog"
      aria-label="What happened then"
      class={css["cause"]}
      onToggle={(event) => {
        if ((event as unknown as ToggleEvent).newState === "closed") close();
      }}
    >
      <strong>{line.name}</strong>
      {asked.error && <p role="alert">{wordsOf(asked.error)}</p>}
      {asked.waiting && <p>Finding the point…</p>}
      {!asked.waiting && !asked.error && !found && <p>This point is not there any more.</p>}
      {found && (
        <>
          <p>
            <b>{short(found.value)}</b> at iteration {counted(found.iteration)}
            <br />
            <time dateTime={new Date(found.time).toISOString()}>{new Date(found.time).toLocaleString()}</time>
          </p>
          <Link to={{ ...run, tab: "console" }} with={{ time: found.time }}>
            Console at that moment
          </Link>
          <Link to={{ ...run, tab: "images" }} with={{ iter: found.iteration }}>
            Images of that iteration
          </Link>
          <Link to={{ ...run, tab: "plots" }} with={{ iter: found.iteration }}>
            Plots of that iteration
          </Link>
          <Link to={{ ...run, tab: "system" }} with={{ at: found.time }}>
            Load of the machine then
          </Link>
        </>
      )}
    </div>
  );
}
