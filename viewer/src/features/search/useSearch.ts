/** Asks the server for all kinds at once, a moment after the last key. */

import { useEffect, useState } from "preact/hooks";

import { api } from "../../api/client";
import { useAsked } from "../../hooks/asked";
import { ALL } from "../../routes";
import { type Facts, factsOf } from "../runs/facts";
import {
  columnsFound,
  type Document,
  type Found,
  foundOf,
  KINDS,
  type Kind,
  LISTED,
  type Listed,
  questionFor,
} from "./kinds";

/** How long, in ms, nothing must be typed before the server is asked. */
const PAUSE = 180;
/** How long, in ms, names of parameters and metrics are kept. */
const KEPT = 60_000;

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
  const listed = LISTED.filter((kind) => kinds.includes(kind));
  const asked = useAsked(`${count} ${kinds.join()} ${settled}`, async (signal) => {
    const groups = await Promise.all(listed.map((kind) => ask(kind, settled, count, signal)));
    return { text: settled, groups: groups.filter(({ found }) => found.length) };
  });
  // Asked apart: after a start, the server takes long for the names of very many runs.
  const named = useAsked(kinds.includes("columns") && settled.trim() ? `${count} ${settled}` : null, async () => {
    const all = columnsFound(await knownFacts(), settled);
    return { text: settled, group: { kind: "columns" as const, found: all.slice(0, count), more: all.length > count } };
  });
  const columns = named.value?.text === asked.value?.text && named.value?.group.found.length ? [named.value.group] : [];
  const answer = asked.value && { ...asked.value, groups: [...asked.value.groups, ...columns] };
  const error = asked.error ?? (listed.length ? null : named.error);
  return { answer, error, waiting: asked.waiting || settled !== text || (named.waiting && !answer?.groups.length) };
}

async function ask(kind: Listed, text: string, count: number, signal: AbortSignal): Promise<Group> {
  const { endpoint, body } = questionFor(kind, text, count + 1);
  const answer = await api(endpoint, body, signal);
  const all: readonly Document[] =
    "tasks" in answer ? answer.tasks : "models" in answer ? answer.models : answer.projects;
  return { kind, found: all.slice(0, count).map((one) => foundOf(kind, one)), more: all.length > count };
}

/** The names of parameters and metrics of all runs: they are many and seldom new, so they are kept for a while. */
let known: { readonly at: number; readonly facts: Promise<Facts> } | null = null;
function knownFacts(): Promise<Facts> {
  if (known && Date.now() - known.at < KEPT) return known.facts;
  const facts = factsOf(ALL, true);
  known = { at: Date.now(), facts };
  facts.catch(() => (known = null));
  return facts;
}

function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
