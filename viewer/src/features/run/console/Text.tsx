/** The text of a message: its colours, and what a search found in it. Everything is text; nothing of it is run. */

import type { JSX } from "preact";

import type { Piece } from "./ansi";
import css from "./Console.module.css";
import type { Part } from "./rows";

export function Text({ parts }: { parts: readonly Part[] }): JSX.Element {
  return <>{parts.map((part, n) => (part.found ? <mark key={n}>{styled(part, n)}</mark> : styled(part, n)))}</>;
}

function styled({ text, style }: Piece, key: number): JSX.Element | string {
  const [fore, back] = style.inverse ? [style.back ?? "page", style.fore ?? "text"] : [style.fore, style.back];
  const names = [
    typeof fore === "number" ? css[`fore${fore}`] : fore === "page" ? css["forePage"] : "",
    typeof back === "number" ? css[`back${back}`] : back === "text" ? css["backText"] : "",
    style.bold && css["bold"],
    style.dim && css["dim"],
    style.italic && css["italic"],
    style.underline && css["underline"],
    style.strike && css["strike"],
  ].filter(Boolean);
  const own = {
    ...(typeof fore === "string" && fore !== "page" && { color: fore }),
    ...(typeof back === "string" && back !== "text" && { backgroundColor: back }),
  };
  if (!names.length && !Object.keys(own).length) return text;
  return (
    <span key={key} class={names.join(" ")} style={own}>
      {text}
    </span>
  );
}
