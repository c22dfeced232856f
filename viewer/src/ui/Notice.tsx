/** What is said in the place of content: that it is on its way, that there is none, or what went wrong. */

import type { ComponentChildren, JSX } from "preact";

import { wordsOf } from "../api/errors";
import css from "./Notice.module.css";

/** An error in words, with what to do. */
export function Failed({ error, again }: { error: Error; again?: () => void }): JSX.Element {
  return (
    <div class={css["failed"]} role="alert">
      <p>{wordsOf(error)}</p>
      {again && (
        <button type="button" onClick={again}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Waiting({ what = "Loading" }: { what?: string }): JSX.Element {
  return (
    <div class={css["waiting"]} role="status">
      {what}…
    </div>
  );
}

/** There is nothing to show, and how that can change. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class={css["empty"]}>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

interface MissingProps {
  /** What it is: "run". */
  what: string;
  id: string;
  /** What it was called, if it was there a moment ago. */
  name?: string | undefined;
  /** Links to go on by. */
  children: ComponentChildren;
}

/** In the place of a thing that there is not. */
export function Missing({ what, id, name, children }: MissingProps): JSX.Element {
  const wasThere = name !== undefined;
  return (
    <Empty title={wasThere ? `This ${what} was deleted` : `There is no ${what} ${id}`}>
      <p>{wasThere ? `It was called ${name}.` : "It was deleted, its address is wrong, or you may not see it."}</p>
      <p>{children}</p>
    </Empty>
  );
}
