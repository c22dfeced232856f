/**
 * Where a search finds something in messages, for marks: a little at a time, so that no expression and no message stops the
 * page. Pure, but for the clock.
 *
 * An expression is run over slices of a text, each so short that it takes some milliseconds at worst. When the time of a
 * turn is over, what was found so far is answered, and `changed` is called when the next turn begins: who asks again then
 * gets more. For example, a drawing of 60 messages marks the first 40, and the next one all of them.
 */

import { type LineExpression, lineExpressionOf } from "../../../lib/expressions";
import type { Message, Span } from "./rows";

/** Milliseconds of searching in a turn, between two turns, and in one message altogether. */
const TURN = 4;
const PAUSE = 40;
const MOST_TIME = 500;
/** More is not marked in one message. */
const MOST_SPANS = 5000;

export interface Found {
  /** What was found, ascending. */
  readonly spans: readonly Span[];
  /** Whether all was searched, or the search was given up. */
  readonly done: boolean;
  /** Whether it was given up, because it takes too long or finds too much. */
  readonly givenUp: boolean;
}

interface Progress extends Found {
  readonly spans: Span[];
  done: boolean;
  givenUp: boolean;
  /** The text before this place was searched. */
  searched: number;
  time: number;
}

export const NOTHING: Found = { spans: [], done: true, givenUp: false };

export interface Clock {
  readonly now: () => number;
  readonly later: (act: () => void, pause: number) => void;
}

export class Finder {
  readonly #known = new WeakMap<Message, Progress>();
  readonly #expression: LineExpression | null;
  /** When this turn ends; null: the next one has not begun. */
  #end: number | null = null;
  #left = false;

  /** `text` is a regular expression, or a text as it is. */
  constructor(
    text: string,
    isRegex: boolean,
    private readonly changed: () => void,
    private readonly clock: Clock = {
      now: () => performance.now(),
      later: (act, pause) => void setTimeout(act, pause),
    },
  ) {
    this.#expression = isRegex ? lineExpressionOf(text) : asItIs(text);
  }

  /** Whether a browser can't read the expression, or might take too long: then nothing is marked. */
  get isUnable(): boolean {
    return this.#expression === null;
  }

  find(message: Message): Found {
    if (!this.#expression) return NOTHING;
    let progress = this.#known.get(message);
    if (!progress)
      this.#known.set(message, (progress = { spans: [], done: false, givenUp: false, searched: 0, time: 0 }));
    while (!progress.done && this.#hasTime()) {
      const begin = this.clock.now();
      searchOn(progress, message.text, this.#expression);
      progress.time += this.clock.now() - begin;
      if (progress.done || (progress.time <= MOST_TIME && progress.spans.length <= MOST_SPANS)) continue;
      progress.done = progress.givenUp = true;
    }
    if (!progress.done) this.#left = true;
    return progress;
  }

  /** Whether there is time left in this turn. The first question begins a turn. */
  #hasTime(): boolean {
    if (this.#end === null) {
      this.#end = this.clock.now() + TURN;
      this.clock.later(() => {
        this.#end = null;
        if (this.#left) this.changed();
        this.#left = false;
      }, PAUSE);
      return true;
    }
    return this.clock.now() < this.#end;
  }
}

function asItIs(text: string): LineExpression | null {
  return text ? { expression: new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "gi"), slice: 100_000 } : null;
}

/**
 * Search one more slice. The sign before it is looked at, too, so that "^" and "\b" mean what they say. What is found at
 * the end of a slice may go on behind it: it is looked for again, from where it begins.
 */
function searchOn(progress: Progress, text: string, { expression, slice }: LineExpression): void {
  const from = progress.searched;
  const before = Math.max(0, from - 1);
  const end = Math.min(text.length, from + slice);
  const part = text.slice(before, end);
  let next = end === text.length ? end : end - (slice >> 1);
  expression.lastIndex = from - before;
  for (let match: RegExpExecArray | null; (match = expression.exec(part)); ) {
    const [first, last] = [before + match.index, before + match.index + match[0].length];
    if (last === end && end < text.length && first > from) {
      next = first;
      break;
    }
    if (last > first) progress.spans.push([first, last]);
    else expression.lastIndex++;
    next = Math.max(next, last);
  }
  progress.searched = next;
  progress.done = next >= text.length;
}
