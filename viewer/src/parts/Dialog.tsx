/** A dialog over the page. Escape and a click beside it close it; the focus returns to where it was. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

import css from "./Dialog.module.css";

interface Props {
  title: string;
  onClose: () => void;
  /** For content that needs the width of the page. */
  wide?: boolean;
  children: ComponentChildren;
}

export function Dialog({ title, onClose, wide = false, children }: Props): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={css["dialog"]}
      aria-label={title}
      data-wide={wide ? "" : undefined}
      onClose={onClose}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.defaultPrevented) return;
        // The browser would close the dialog now and say so later: keys that are pressed in between would be lost.
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === element.current) onClose();
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
