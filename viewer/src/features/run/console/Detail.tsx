/** The chosen line: its whole message, wrapped, where it came from, and where it lies on the curves. */

import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";

import { useAsked } from "../../../hooks/asked";
import { counted } from "../../../lib/times";
import type { Place } from "../../../routes";
import { Copy } from "../../../ui/Copy";
import { Link } from "../../../ui/Link";
import { longLine, MOST_SHOWN, messageAddress } from "./ask";
import css from "./Console.module.css";
import { type Finder, NOTHING } from "./finding";
import type { ShownLine } from "./log";
import { allStates } from "./progress";
import { Message } from "./rows";
import { Text } from "./Text";

interface Props {
  readonly task: string;
  readonly line: ShownLine;
  readonly scalars: Place;
  readonly finder: Finder | null;
  readonly onClose: () => void;
}

export function Detail({ task, line, scalars, finder, onClose }: Props): JSX.Element {
  const isCut = line.length > line.msg.length;
  const asked = useAsked(isCut ? `${line.line}` : null, (signal) => longLine(task, line.line, signal));
  const written = asked.value?.position === line.position ? asked.value.msg : line.msg;
  const message = useMemo(() => new Message(allStates(written).replace(/\n+$/, ""), line.start), [written, line.start]);
  const found = finder?.find(message) ?? NOTHING;
  const text = useRef<HTMLPreElement>(null);
  const first = found.spans[0]?.[0];
  useLayoutEffect(() => {
    const mark = text.current?.querySelector("mark");
    if (text.current && mark)
      text.current.scrollTop = mark.offsetTop - text.current.offsetTop - text.current.clientHeight / 2;
  }, [message, first]);
  return (
    <section class={css["detail"]} aria-label={`Line ${line.line + 1}`}>
      <header>
        <strong>Line {counted(line.line + 1)}</strong>
        <time dateTime={timeText(line.timestamp)}>{exact(line.timestamp)}</time>
        {line.level && <span data-level={line.level}>{line.level}</span>}
        {line.worker && <span class={css["worker"]}>{line.worker}</span>}
        {line.iter !== null && <span>iteration {counted(line.iter)}</span>}
        <span class={css["space"]} />
        <Link to={scalars} with={{ at: line.timestamp }}>
          On the curves
        </Link>
        <Copy text={written} what={line.length > MOST_SHOWN ? `first ${counted(MOST_SHOWN)} characters` : "message"} />
        <button type="button" aria-label="Close the line" onClick={onClose}>
          ×
        </button>
      </header>
      <pre tabIndex={0} aria-label="The whole message" ref={text}>
        <Text parts={message.parts(0, message.text.length, found.spans)} />
      </pre>
      {found.givenUp && <p>Not all of this message was searched: the search takes too long.</p>}
      {line.length > MOST_SHOWN && (
        <p>
          <Whole task={task} line={line} />
        </p>
      )}
    </section>
  );
}

/** Says that only the beginning of a message is shown, with a link to all of it. */
export function Whole({ task, line }: { task: string; line: ShownLine }): JSX.Element {
  return (
    <>
      The first {counted(MOST_SHOWN)} of {counted(line.length)} characters ·{" "}
      <a href={messageAddress(task, line.line)} target="_blank" rel="noopener">
        The whole message
      </a>
    </>
  );
}

/** The time of an event in words; a timestamp may be no date that there is. */
export function exact(timestamp: number): string {
  const date = new Date(timestamp);
  return Number.isNaN(date.getTime())
    ? `${timestamp} ms`
    : date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

function timeText(timestamp: number): string {
  const date = new Date(timestamp);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}
