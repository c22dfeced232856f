/**
 * Tells how an action went. What is told goes away by itself; an error stays longer.
 *
 *     say("Archived 3 runs", { action: { label: "Undo", run: restore } });
 *     await attempt(() => api("tasks.stop", { task: id }), "The run is being stopped");
 */

import { signal } from "@preact/signals";

import { wordsOf } from "../api/errors";

export interface Toast {
  readonly id: number;
  readonly text: string;
  readonly bad: boolean;
  readonly action: { readonly label: string; readonly run: () => void } | null;
}

export const toasts = signal<readonly Toast[]>([]);
let last = 0;
/** More than these would hide the page. */
const MOST = 4;
const SECONDS = { good: 6, bad: 15 };

/** Show a text. */
export function say(text: string, { bad = false, action = null }: Partial<Pick<Toast, "bad" | "action">> = {}): void {
  const toast: Toast = { id: ++last, text, bad, action };
  toasts.value = [...toasts.peek(), toast].slice(-MOST);
  setTimeout(() => drop(toast.id), 1000 * (bad ? SECONDS.bad : SECONDS.good));
}

/** Do something and say how it went: `done` if it is given, or why it is not done. Answers whether it went well. */
export async function attempt<T>(action: () => Promise<T>, done?: string | ((value: T) => string)): Promise<boolean> {
  try {
    const value = await action();
    if (done !== undefined) say(typeof done === "string" ? done : done(value));
    return true;
  } catch (error) {
    say(`Not done. ${wordsOf(error instanceof Error ? error : new Error(String(error)))}`, { bad: true });
    return false;
  }
}

export function drop(id: number): void {
  toasts.value = toasts.peek().filter((toast) => toast.id !== id);
}
