/**
 * Tells how an action went, at the edge of the page, and to screen readers. It goes away by itself; an error stays longer.
 *
 *     say("Archived 3 runs", { action: { label: "Undo", run: restore } });
 *     await attempt(() => api("tasks.stop", { task: id }), "The run is being stopped");
 */

import { signal } from "@preact/signals";
import type { JSX } from "preact";

import { wordsOf } from "./Notice";
import css from "./Toast.module.css";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly bad: boolean;
  readonly action: { readonly label: string; readonly run: () => void } | null;
}

const toasts = signal<readonly Toast[]>([]);
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

function drop(id: number): void {
  toasts.value = toasts.peek().filter((toast) => toast.id !== id);
}

/** Where the texts show. The shell has it once. */
export function Toasts(): JSX.Element {
  return (
    <div class={css["toasts"]} role="status" aria-live="polite">
      {toasts.value.map(({ id, text, bad, action }) => (
        <div key={id} class={css["toast"]} data-bad={bad ? "" : undefined}>
          <span>{text}</span>
          {action && (
            <button
              type="button"
              onClick={() => {
                drop(id);
                action.run();
              }}
            >
              {action.label}
            </button>
          )}
          <button type="button" class={css["close"]} aria-label="Dismiss" onClick={() => drop(id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  );
}
