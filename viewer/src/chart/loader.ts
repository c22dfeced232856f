/**
 * Puts the questions of many charts together: those that become visible at the same time, and ask the same of different
 * metrics, are one request. Those that somebody waits for are asked first, alone: an answer about one chart comes
 * several times sooner than one about all of them. The others are asked when it has come, or after a moment: a slow answer
 * does not hold them up.
 */

import type { Curve } from "../api/columns";
import type { Ask, ChartSource } from "./source";

export type OneAsk = Omit<Ask, "metrics"> & { readonly metric: string };

interface Waiting {
  readonly ask: OneAsk;
  readonly first: boolean;
  readonly signal: AbortSignal;
  readonly resolve: (curves: readonly Curve[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Metrics of one request, and characters of their names: addresses have a longest length. */
const MOST_METRICS = 40;
const MOST_CHARACTERS = 4000;
/** Milliseconds that the others wait for the first answer at most. */
const HEAD_START = 100;

export class Loader {
  private waiting: Waiting[] = [];

  constructor(private readonly source: ChartSource) {}

  /**
   * The curves of one metric. If `signal` aborts, the question is given up, unless other charts wait for it, too.
   * `first`: what is not first is asked when this is answered, or a moment later.
   */
  load(ask: OneAsk, signal: AbortSignal, first = false): Promise<readonly Curve[]> {
    return new Promise((resolve, reject) => {
      if (!this.waiting.length) setTimeout(() => void this.flush(), 0);
      this.waiting.push({ ask, first, signal, resolve, reject });
    });
  }

  private async flush(): Promise<void> {
    const all = this.waiting;
    this.waiting = [];
    const first = all.filter((one) => one.first);
    const answered = this.ask(first);
    if (first.length) await Promise.race([answered, new Promise((resolve) => setTimeout(resolve, HEAD_START))]);
    await this.ask(all.filter((one) => !one.first));
  }

  private async ask(some: readonly Waiting[]): Promise<void> {
    const wanted = some.filter(({ signal }) => !signal.aborted);
    await Promise.all(grouped(wanted).map((group) => this.request(group)));
  }

  private async request(group: readonly Waiting[]): Promise<void> {
    const stop = new AbortController();
    const check = (): void => {
      if (group.every(({ signal }) => signal.aborted)) stop.abort();
    };
    for (const { signal } of group) signal.addEventListener("abort", check);
    const { metric: _, variants: all, ...rest } = group[0]!.ask;
    const variants = all && [...new Set(group.flatMap(({ ask }) => ask.variants ?? []))];
    try {
      const metrics = [...new Set(group.map(({ ask }) => ask.metric))];
      const curves = await this.source.curves({ ...rest, metrics, variants }, stop.signal);
      for (const { ask, resolve } of group) resolve(curves.filter((curve) => isOf(curve, ask)));
    } catch (error) {
      for (const { reject } of group) reject(error);
    } finally {
      for (const { signal } of group) signal.removeEventListener("abort", check);
    }
  }
}

function isOf({ metric, variant }: Curve, ask: OneAsk): boolean {
  return metric === ask.metric && (!ask.variants || ask.variants.includes(variant));
}

/**
 * Those that may be one request: all else is the same, and the address does not become too long. The server answers all
 * variants of all metrics, so that charts with some variants only go together if they are of the same metric.
 */
export function grouped<T extends { readonly ask: OneAsk }>(all: readonly T[]): T[][] {
  const groups: T[][] = [];
  const open = new Map<string, { group: T[]; characters: number }>();
  for (const one of all) {
    const { metric, variants, ...rest } = one.ask;
    const key = JSON.stringify([rest, variants && metric]);
    const characters = (variants ?? [metric]).join("").length;
    let found = open.get(key);
    if (!found || found.group.length >= MOST_METRICS || found.characters + characters > MOST_CHARACTERS) {
      found = { group: [], characters: 0 };
      groups.push(found.group);
      open.set(key, found);
    }
    found.group.push(one);
    found.characters += characters;
  }
  return groups;
}
