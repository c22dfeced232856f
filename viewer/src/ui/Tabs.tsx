/** Tabs that are links, so that each has an address: arrow keys move between them. */

import type { JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

import type { Place } from "../routes";
import { go, type Parameters } from "../state/address";
import { Link } from "./Link";
import css from "./Tabs.module.css";

export interface TabLink {
  readonly name: string;
  readonly label: string;
  readonly to: Place;
  readonly with?: Parameters;
}

export function Tabs({
  tabs,
  chosen,
  label,
}: {
  tabs: readonly TabLink[];
  chosen: string;
  label: string;
}): JSX.Element {
  const list = useRef<HTMLDivElement>(null);
  // On a phone, not all tabs fit.
  useLayoutEffect(
    () => list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" }),
    [chosen],
  );
  function onKeyDown(event: KeyboardEvent): void {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    const at = tabs.findIndex((tab) => tab.name === chosen);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (!step || !next) return;
    event.preventDefault();
    go(next.to, next.with);
    list.current?.querySelector<HTMLElement>(`[data-tab="${next.name}"]`)?.focus();
  }
  return (
    <div ref={list} class={css["tabs"]} role="tablist" aria-label={label} onKeyDown={onKeyDown}>
      {tabs.map((tab) => (
        <Link
          key={tab.name}
          to={tab.to}
          {...(tab.with && { with: tab.with })}
          role="tab"
          aria-selected={tab.name === chosen}
          tabIndex={tab.name === chosen ? 0 : -1}
          data-tab={tab.name}
          class={css["tab"] ?? ""}
        >
          {tab.label}
        </Link>
      ))}
    </div>
  );
}
