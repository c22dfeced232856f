/**
 * The one place that listens to the keyboard. A component says by `useKeys` what its keys do while it is shown; the help
 * dialog lists all that are registered at the moment.
 *
 *     useKeys("Table", [
 *       { keys: ["j"], does: "Next run", run: () => move(1) },
 *       { keys: ["1", "2", "3"], shown: "1–3", does: "Go to a tab", run: (key) => show(Number(key)) },
 *     ]);
 *
 * "g p" is two keys, one after the other. Keys are never taken from somebody who types in a field, nor with Ctrl, Alt or
 * Meta, which belong to the browser. If two components register the same key, the one that came last has it.
 */

import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

export interface Binding {
  /** Names as KeyboardEvent.key has them: "j", "?", "ArrowLeft", "g p". */
  readonly keys: readonly string[];
  /** What the keys do, for the help dialog. */
  readonly does: string;
  readonly run: (key: string, event: KeyboardEvent) => void;
  /** How the help dialog writes the keys, such as "1–6". */
  readonly shown?: string;
}

export interface Group {
  readonly title: string;
  readonly bindings: readonly Binding[];
  /** Whether the keys work while a dialog is open. The keys of a page don't: its dialog is in front of it. */
  readonly inDialog: boolean;
}

/** All groups that are registered, in the order in which they came. */
export const groups = signal<readonly Group[]>([]);

/** How long, in ms, the second key of "g p" is waited for. */
const PAUSE = 1500;

/** What a key does: the binding that takes it, that it may begin a sequence, or nothing. */
export type Meaning = { readonly binding: Binding; readonly key: string } | "begins" | null;

/** What `key` means after `before` (the first key of a sequence, or ""). */
export function meaningOf(all: readonly Group[], before: string, key: string, dialogIsOpen: boolean): Meaning {
  const wanted = before ? `${before} ${key}` : key;
  const reached = all.filter((group) => group.inDialog || !dialogIsOpen).toReversed();
  for (const group of reached) {
    const binding = group.bindings.find((one) => one.keys.includes(wanted));
    if (binding) return { binding, key: wanted };
  }
  const begins = reached.some((group) =>
    group.bindings.some((one) => one.keys.some((keys) => keys.startsWith(`${wanted} `))),
  );
  return begins ? "begins" : null;
}

/** Register keys while the component is shown. `title` heads them in the help dialog. */
export function useKeys(
  title: string,
  bindings: readonly Binding[],
  { inDialog = false }: { inDialog?: boolean } = {},
): void {
  const latest = useRef(bindings);
  latest.current = bindings;
  // Not `useEffect`, which runs after the component is seen: keys that are pressed at once would be lost.
  useLayoutEffect(() => {
    const group: Group = {
      title,
      inDialog,
      get bindings() {
        return latest.current;
      },
    };
    groups.value = [...groups.peek(), group];
    return () => {
      groups.value = groups.peek().filter((one) => one !== group);
    };
  }, [title, inDialog]);
}

/** Fields that take no text. */
const PRESSED = new Set(["checkbox", "radio", "button", "submit", "reset", "range", "color", "file"]);

/** Whether what has the focus takes text or keys of its own. */
export function isTyping(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement) return !PRESSED.has(target.type);
  return (
    target instanceof HTMLTextAreaElement ||
    target instanceof HTMLSelectElement ||
    (target instanceof HTMLElement && target.isContentEditable)
  );
}

/** Listen to the keyboard until the returned function is called. The shell does that once. */
export function listen(): () => void {
  let before = "";
  let forget: ReturnType<typeof setTimeout> | undefined;
  function onKeyDown(event: KeyboardEvent): void {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "Shift" || isTyping(event.target)) return;
    const dialogIsOpen = document.querySelector("dialog[open]") !== null;
    const meaning =
      meaningOf(groups.peek(), before, event.key, dialogIsOpen) ??
      (before ? meaningOf(groups.peek(), "", event.key, dialogIsOpen) : null);
    clearTimeout(forget);
    before = meaning === "begins" ? event.key : "";
    if (meaning === null) return;
    if (meaning === "begins") {
      forget = setTimeout(() => (before = ""), PAUSE);
      return;
    }
    event.preventDefault();
    meaning.binding.run(meaning.key, event);
  }
  document.addEventListener("keydown", onKeyDown);
  return () => {
    clearTimeout(forget);
    document.removeEventListener("keydown", onKeyDown);
  };
}
