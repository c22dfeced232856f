/** The chosen line: its whole message, wrapped, where it came from, and where it lies on the curves. */

import type { JSX } from "preact";

import { useAsked } from "../parts/asked";
import { Copy } from "../parts/Copy";
import { Link } from "../parts/Link";
import { counted } from "../parts/times";
import type { Place } from "../routes";
import { pieces, type Style } from "./ansi";
import { wholeLine } from "./ask";
import css from "./Console.module.css";
import type { ShownLine } from "./log";
import { Text } from "./Text";

/** More characters take long to lay out. */
const LONGEST = 200_000;

interface Props {
  readonly task: string;
  readonly line: ShownLine;
  readonly scalars: Place;
  readonly found: RegExp | null;
  readonly onClose: () => void;
}

export function Detail({ task, line, scalars, found, onClose }: Props): JSX.Element {
  const isCut = line.length > line.msg.length;
  const asked = useAsked(isCut ? `${line.line}` : null, (signal) => wholeLine(task, line.line, signal));
  const message = asked.value?.position === line.position ? asked.value.msg : line.msg;
  const shown = message.slice(0, LONGEST).replaceAll("\r", "⏎\n").replace(/\n+$/, "");
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
        <Copy text={message} what="message" />
        <button type="button" aria-label="Close the line" onClick={onClose}>
          ×
        </button>
      </header>
      <pre tabIndex={0} aria-label="The whole message">
        {withStyles(shown.split("\n"), line.start).map(({ text, start }, n) => (
          <span key={n}>
            {n > 0 && "\n"}
            <Text text={text} start={start} found={found} />
          </span>
        ))}
      </pre>
      {line.length > shown.length && message.length > LONGEST && (
        <p>The first {counted(LONGEST)} of {counted(line.length)} characters. The download has all of them.</p>
      )}
    </section>
  );
}

/** Each line with the style in which it begins: that in which the one before it ended. */
function withStyles(lines: readonly string[], start: Style): { text: string; start: Style }[] {
  let style = start;
  return lines.map((text) => {
    const line = { text, start: style };
    style = pieces(text, style).after;
    return line;
  });
}

/** The time of an event in words; a timestamp may be no date that there is. */
export function exact(timestamp: number): string {
  const date = new Date(timestamp);
  return Number.isNaN(date.getTime()) ? `${timestamp} ms` : date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

function timeText(timestamp: number): string {
  const date = new Date(timestamp);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}
