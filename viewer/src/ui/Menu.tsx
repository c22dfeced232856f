/**
 * A button that opens a menu. Arrow keys, Home, End and first letters move in it, Escape and a click beside it close it.
 *
 * An entry that can't be chosen now says why: `why` is shown when the pointer rests on it, and read out.
 */

import type { ComponentChildren, JSX } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";

import { nextEntry } from "../lib/entries";
import type { Place } from "../routes";
import { addressOf, go } from "../state/address";
import css from "./Menu.module.css";

export interface MenuItem {
  readonly label: string;
  /** What is done … */
  readonly run?: () => void;
  /** … or which page is shown. */
  readonly to?: Place;
  /** Why it can't be chosen now. */
  readonly why?: string | null;
  readonly danger?: boolean;
  /** One of several, or on and off: whether it is chosen. */
  readonly checked?: boolean;
  /** Whether it leads to the page that is shown, or to the part that the page belongs to. */
  readonly "aria-current"?: "page" | "true";
  /** The key that does the same. */
  readonly key?: string;
}

type Items = readonly (MenuItem | string | null)[];

interface Props {
  /** What the button shows … */
  readonly children: ComponentChildren;
  /** … and its name, if that is no text. */
  readonly label?: string;
  /** null draws a line. A text is a heading. A function is called when the menu is opened. */
  readonly items: Items | (() => Items);
  readonly class?: string;
  /** Whether the page that is shown belongs to an entry. */
  readonly current?: boolean;
}

export function Menu({ children, label, items, class: className, current }: Props): JSX.Element {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const [open, setOpen] = useState(false);
  /** A press on the button closes an open menu before the click comes: the click must not open it again. */
  const wasOpen = useRef(false);
  // Only an open menu is in the document, because each row of a long list may have a menu.
  useLayoutEffect(() => {
    if (open && button.current && list.current) show(list.current, button.current);
  }, [open]);

  function choose(item: MenuItem): void {
    if (item.why) return;
    list.current?.hidePopover();
    button.current?.focus();
    item.run?.();
    if (item.to) go(item.to);
  }

  function onKeyDown(event: KeyboardEvent): void {
    const all = list.current ? entriesOf(list.current) : [];
    const at = all.indexOf(document.activeElement as HTMLElement);
    const next = nextEntry(
      event.key,
      at,
      all.map((entry) => entry.textContent ?? ""),
    );
    if (event.key === "Tab") list.current?.hidePopover();
    if (next === null) return;
    event.preventDefault();
    all[next]?.focus();
  }

  return (
    <>
      <button
        ref={button}
        type="button"
        class={className}
        aria-current={current || undefined}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        aria-label={label}
        onPointerDown={() => (wasOpen.current = open)}
        onClick={() => {
          if (wasOpen.current) list.current?.hidePopover();
          else setOpen(true);
          wasOpen.current = false;
        }}
        onKeyDown={(event) => {
          if (event.key !== "ArrowDown" || open) return;
          event.preventDefault();
          setOpen(true);
        }}
      >
        {children}
      </button>
      {open && (
        <div
          ref={list}
          id={id}
          role="menu"
          aria-label={label}
          popover="auto"
          class={css["menu"]}
          onKeyDown={onKeyDown}
          onToggle={(event) => {
            const opened = (event as unknown as ToggleEvent).newState === "open";
            setOpen(opened);
            if (!opened && list.current?.contains(document.activeElement)) button.current?.focus();
          }}
        >
          {(typeof items === "function" ? items() : items).map((item, n) => {
            if (item === null) return <div key={n} role="separator" class={css["line"]} />;
            if (typeof item === "string") {
              return (
                <div key={n} role="presentation" class={css["heading"]}>
                  {item}
                </div>
              );
            }
            return <Entry key={n} item={item} choose={() => choose(item)} />;
          })}
        </div>
      )}
    </>
  );
}

function entriesOf(menu: HTMLElement): HTMLElement[] {
  return [...menu.querySelectorAll<HTMLElement>("[data-entry]")];
}

/** Show the menu below its button, or above it if there is no room below. The first entry has the focus. */
function show(menu: HTMLElement, button: HTMLElement): void {
  menu.showPopover();
  const place = button.getBoundingClientRect();
  const left = Math.min(place.left, innerWidth - menu.offsetWidth - 8);
  const below = place.bottom + 4 + menu.offsetHeight < innerHeight || place.top < menu.offsetHeight;
  menu.style.left = `${Math.max(8, left)}px`;
  menu.style.top = `${below ? place.bottom + 4 : place.top - menu.offsetHeight - 4}px`;
  menu.style.maxHeight = `${innerHeight - (below ? place.bottom + 12 : 8)}px`;
  entriesOf(menu)[0]?.focus();
}

function Entry({ item, choose }: { item: MenuItem; choose: () => void }): JSX.Element {
  const shared = {
    class: css["entry"],
    role: item.checked === undefined ? ("menuitem" as const) : ("menuitemradio" as const),
    tabIndex: -1,
    "data-entry": "",
    "data-danger": item.danger ? "" : undefined,
    ...(item.checked !== undefined && { "aria-checked": item.checked }),
    "aria-current": item["aria-current"],
    ...(item.why && { "aria-disabled": true, title: item.why }),
  };
  const content = (
    <>
      <span>{item.label}</span>
      {item.key && <kbd aria-hidden="true">{item.key}</kbd>}
    </>
  );
  if (item.to && !item.why) {
    return (
      <a
        {...shared}
        href={addressOf(item.to)}
        onClick={(event) => {
          if (event.ctrlKey || event.metaKey || event.shiftKey) return;
          event.preventDefault();
          choose();
        }}
      >
        {content}
      </a>
    );
  }
  return (
    <button type="button" {...shared} onClick={choose}>
      {content}
    </button>
  );
}
