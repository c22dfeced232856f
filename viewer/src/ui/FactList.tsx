/** A list of names and values beside each other, such as "Created  3 minutes ago": `<div><dt>…</dt><dd>…</dd></div>` each. */

import type { ComponentChildren, JSX } from "preact";

import css from "./FactList.module.css";

export function FactList({ children }: { children: ComponentChildren }): JSX.Element {
  return <dl class={css["facts"]}>{children}</dl>;
}
