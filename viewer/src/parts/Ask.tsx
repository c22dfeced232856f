/** A dialog that asks before something is done, and says what that means. It stays open if the server refuses. */

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";

import css from "./Ask.module.css";
import { Dialog } from "./Dialog";
import { attempt } from "./Toast";

interface Props {
  title: string;
  button: string;
  danger?: boolean;
  close: () => void;
  act: () => Promise<unknown>;
  done: string;
  after: () => void;
  children: ComponentChildren;
}

export function Ask({ title, button, danger, close, act, done, after, children }: Props): JSX.Element {
  const [waiting, setWaiting] = useState(false);
  async function submit(): Promise<void> {
    setWaiting(true);
    const good = await attempt(act, done);
    setWaiting(false);
    if (!good) return;
    close();
    after();
  }
  return (
    <Dialog title={title} onClose={close}>
      <form
        class={css["form"]}
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        {children}
        <div class={css["buttons"]}>
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class={danger ? "danger" : "primary"} disabled={waiting}>
            {waiting ? "One moment…" : button}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
