/** Asks the server for all kinds at once, a moment after the last key. */

import { useEffect, useState } from "preact/hooks";

import { api } from "../api/client";
import { useAsked } from "../parts/asked";
import { foundOf, KINDS, questionFor, type Document, type Found, type Kind } from "./kinds";

/** How long, in ms, nothing must be typed before the server is asked. */
const PAUSE = 180;

export interface Group {
  readonly kind: Kind;
  readonly found: readonly Found[];
  /** Whether there are more than were asked for. */
  readonly more: boolean;
}

interface Answer {
  readonly text: string;
  readonly groups: readonly Group[];
}

/** What has all words of `text`, at most `count` of each of the kinds; kinds without anything are left out. */
export function useSearch(
  text: string,
  { kinds = KINDS, count }: { kinds?: readonly Kind[]; count: number },
): { answer: Answer | null; error: Error | null; waiting: boolean } {
  const settled = useSettled(text);
  const asked = useAsked(`${count} ${kinds.join()} ${settled}`, async (signal) => {
    const groups = await Promise.all(kinds.map((kind) => ask(kind, settled, count, signal)));
    return { text: settled, groups: groups.filter(({ found }) => found.length) };
  });
  return { answer: asked.value, error: asked.error, waiting: asked.waiting || settled !== text };
}

async function ask(kind: Kind, text: string, count: number, signal: AbortSignal): Promise<Group> {
  const { endpoint, body, list } = questionFor(kind, text, count + 1);
  const answer = await api<Partial<Record<typeof list, Document[]>>>(endpoint, body, signal);
  const all = answer[list] ?? [];
  return { kind, found: all.slice(0, count).map((one) => foundOf(kind, one)), more: all.length > count };
}

function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
