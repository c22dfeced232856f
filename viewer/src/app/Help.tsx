/** The dialog that lists what keys do on this page. */

import type { JSX } from "preact";

import { groups } from "../hooks/keys";
import { Dialog } from "../ui/Dialog";
import css from "./Help.module.css";

/** Names of keys that are better known by a sign. */
const SIGNS: Readonly<Record<string, string>> = {
  ArrowLeft: "←",
  ArrowRight: "→",
  ArrowUp: "↑",
  ArrowDown: "↓",
  Escape: "Esc",
  " ": "Space",
};

export function Help({ onClose }: { onClose: () => void }): JSX.Element {
  const titles = [...new Set(groups.value.map((group) => group.title))];
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      <div class={css["groups"]}>
        {titles.map((title) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl class={css["keys"]}>
              {groups.value
                .filter((group) => group.title === title)
                .flatMap((group) => group.bindings)
                .map((binding) => (
                  <div key={binding.does}>
                    <dt>
                      {(binding.shown ? [binding.shown] : binding.keys).map((keys) => (
                        <kbd key={keys}>{SIGNS[keys] ?? keys}</kbd>
                      ))}
                    </dt>
                    <dd>{binding.does}</dd>
                  </div>
                ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
