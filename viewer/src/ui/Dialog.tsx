/**
 * A dialog over the page. It begins in its first field, or else on its main button. Escape and a click beside it close it;
 * the focus returns to where it was.
 */

import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

import css from "./Dialog.module.css";

interface Props {
  title: string;
  onClose: () => void;
  /** For content that needs the width of the page. */
  wide?: boolean;
  children: ComponentChildren;
}

const FIELD = "form :is(input, select, textarea)";
const MAIN_BUTTON = "form button[type=submit]";

export function Dialog({ title, onClose, wide = false, children }: Props): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  /** Whether the pointer was pressed beside the dialog, and not while a text in it is selected. */
  const pressed = useRef(false);
  // Not `useEffect`, which runs after the dialog is seen: keys that are pressed at once would be lost.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const dialog = element.current!;
    dialog.showModal();
    if (!dialog.querySelector("[autofocus]")) dialog.querySelector<HTMLElement>(`${FIELD}, ${MAIN_BUTTON}`)?.focus();
    // Later, as nothing but the dialog takes the focus until it has gone from the page.
    return () =>
      queueMicrotask(() => {
        if (before instanceof HTMLElement && document.activeElement === document.body)
          before.focus({ preventScroll: true });
      });
  }, []);
  return (
    <dialog
      ref={element}
      class={css["dialog"]}
      aria-label={title}
      data-wide={wide ? "" : undefined}
      onClose={onClose}
      onKeyDown={(event) => {
        // A key that is held down has opened the dialog: it does not answer what the dialog asks.
        if (event.key === "Enter" && event.repeat) event.preventDefault();
        if (event.key !== "Escape" || event.defaultPrevented) return;
        // The browser would close the dialog now and say so later: keys that are pressed in between would be lost.
        event.preventDefault();
        onClose();
      }}
      onPointerDown={(event) => (pressed.current = event.target === element.current)}
      onClick={(event) => {
        // The second click of a double one was meant for what opened the dialog.
        if (event.target === element.current && pressed.current && event.detail < 2) onClose();
      }}
    >
      <div class={css["content"]}>
        <header class={css["head"]}>
          <h2>{title}</h2>
          <button type="button" class={css["close"]} aria-label="Close" onClick={onClose}>
            ×
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
