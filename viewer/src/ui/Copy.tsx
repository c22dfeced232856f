/** A button that copies a text. */

import type { JSX } from "preact";

import { say } from "../state/toasts";
import css from "./Copy.module.css";

export function Copy({ text, what }: { text: string; what: string }): JSX.Element {
  return (
    <button
      type="button"
      class={css["copy"]}
      title={`Copy the ${what}`}
      aria-label={`Copy the ${what}`}
      onClick={() => void copy(text, `Copied the ${what}`)}
    >
      <svg
        viewBox="0 0 16 16"
        width="12"
        height="12"
        aria-hidden="true"
        fill="none"
        stroke="currentColor"
        stroke-width="1.5"
      >
        <rect x="5.5" y="5.5" width="8" height="8" rx="1.5" />
        <path d="M10.5 5.5v-2a1 1 0 0 0-1-1h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1h2" />
      </svg>
    </button>
  );
}

/** Copy a text, and say so: `done`. */
export async function copy(text: string, done: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(done);
  } catch {
    say("The browser does not let this page copy: select the text and copy it by hand", { bad: true });
  }
}
