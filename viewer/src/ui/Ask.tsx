/** A dialog that asks before something is done, and says what that means. It stays open if the server refuses. */

import type { ComponentChildren, JSX } from "preact";

import { useOnce, useShown } from "../hooks/once";
import type { Place } from "../routes";
import { go } from "../state/address";
import { attempt } from "../state/toasts";
import css from "./Ask.module.css";
import { Dialog } from "./Dialog";

interface Props {
  title: string;
  button: string;
  danger?: boolean;
  close: () => void;
  act: () => Promise<unknown>;
  done: string;
  after?: () => void;
  /** The page that is shown then, but not to somebody who has closed the dialog meanwhile. */
  to?: () => Place;
  children: ComponentChildren;
}

export function Ask({ title, button, danger, close, act, done, after, to, children }: Props): JSX.Element {
  const [waiting, once] = useOnce();
  const isShown = useShown();
  async function submit(): Promise<void> {
    if (!(await attempt(act, done))) return;
    if (isShown()) {
      close();
      if (to) go(to());
    }
    after?.();
  }
  return (
    <Dialog title={title} onClose={close}>
      <form
        class={css["form"]}
        onSubmit={(event) => {
          event.preventDefault();
          void once(submit);
        }}
      >
        {children}
        <div class={css["buttons"]}>
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class={danger ? "danger" : "primary"} aria-busy={waiting}>
            {waiting ? "One moment…" : button}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
