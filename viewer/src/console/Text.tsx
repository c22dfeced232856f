/** The text of a line: its colours, and what a search found in it. Everything is text; nothing of it is run. */

import type { JSX } from "preact";

import { expressionOf, LONGEST_LINE, OF_LINES } from "../parts/expressions";
import { pieces, type Piece, type Style } from "./ansi";
import css from "./Console.module.css";

export function Text({ text, start, found }: { text: string; start: Style; found: RegExp | null }): JSX.Element {
  const all = pieces(text, start).pieces;
  if (!found) return <>{all.map((piece, n) => styled(piece, n))}</>;
  return <>{marked(all, found).map(({ piece, is }, n) => (is ? <mark key={n}>{styled(piece, n)}</mark> : styled(piece, n)))}</>;
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

/** The pieces, cut where a match begins or ends. */
function marked(all: readonly Piece[], found: RegExp): { piece: Piece; is: boolean }[] {
  const whole = all.map((piece) => piece.text).join("").slice(0, LONGEST_LINE);
  const cuts: [number, number][] = [];
  for (const match of whole.matchAll(found)) {
    if (match[0]) cuts.push([match.index, match.index + match[0].length]);
    if (cuts.length >= 100) break;
  }
  const result: { piece: Piece; is: boolean }[] = [];
  let place = 0;
  let n = 0;
  for (const piece of all) {
    let rest = piece.text;
    while (rest) {
      while (n < cuts.length && cuts[n]![1] <= place) n++;
      const [first, end] = cuts[n] ?? [Infinity, Infinity];
      const is = first <= place;
      const length = Math.min(rest.length, (is ? end : first) - place);
      result.push({ piece: { ...piece, text: rest.slice(0, length) }, is });
      rest = rest.slice(length);
      place += length;
    }
  }
  return result;
}

/** What to mark in texts for a search; null if a browser cannot read its expression, or might take too long. */
export function patternOf(text: string, isRegex: boolean): RegExp | null {
  if (!text) return null;
  return isRegex ? expressionOf(text, "g", OF_LINES) : new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "gi");
}
