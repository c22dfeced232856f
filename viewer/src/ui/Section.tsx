/** A part of a page under a heading, which can be folded. Whether it is folded is remembered in this browser. */

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";

import { counted } from "../lib/times";
import { remember, remembered } from "../state/session";
import css from "./Section.module.css";

interface Props {
  title: string;
  /** How many things are in it. */
  count?: number | null;
  /** Buttons and fields at the right of the heading. */
  tools?: ComponentChildren;
  children: ComponentChildren;
}

export function Section({ title, count, tools, children }: Props): JSX.Element {
  const [open, setOpen] = useState(() => remembered(`section.${title}`, true));
  return (
    <section class={css["section"]} aria-label={title}>
      <header class={css["head"]}>
        <h2>
          <button
            type="button"
            aria-expanded={open}
            onClick={() => {
              setOpen(!open);
              remember(`section.${title}`, open ? false : undefined);
            }}
          >
            {title}
            {count !== undefined && count !== null && <span class={css["count"]}>{counted(count)}</span>}
          </button>
        </h2>
        {open && <div class={css["tools"]}>{tools}</div>}
      </header>
      {open && children}
    </section>
  );
}
