/** How actions went, at the edge of the page, and for screen readers. */

import type { JSX } from "preact";

import { drop, toasts } from "../state/toasts";
import css from "./Toast.module.css";

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
