/** A text that somebody changes in a field, in the place of the text itself. */

import { useReducer, useRef } from "preact/hooks";

export interface Draft {
  /** What the field has. */
  readonly text: string;
  /** What was there before. */
  readonly before: string;
  /** Whether the server refused the text: its field is back by itself, and must not take the focus from another one. */
  readonly refused: boolean;
}

export interface Drafting {
  /** null while the text itself is shown. */
  readonly draft: Draft | null;
  readonly open: (text: string) => void;
  readonly type: (text: string) => void;
  readonly close: () => void;
  /** Close the field, and save its text if that was changed. If the server refuses it, the field comes back. */
  readonly submit: () => void;
}

/** `save` answers whether the server took the text. */
export function useDraft(save: ((text: string) => Promise<boolean>) | undefined): Drafting {
  // Not a state, which changes later: a field that goes loses the focus, and must not be sent again by that.
  const now = useRef<Draft | null>(null);
  const [, draw] = useReducer<number, void>((times) => times + 1, 0);
  function set(draft: Draft | null): void {
    now.current = draft;
    draw();
  }
  async function send(draft: Draft): Promise<void> {
    if (draft.text === draft.before || !save || (await save(draft.text))) return;
    if (!now.current) set({ ...draft, refused: true });
  }
  return {
    draft: now.current,
    open: (text) => set({ text, before: text, refused: false }),
    type: (text) => now.current && set({ ...now.current, text }),
    close: () => set(null),
    submit: () => {
      const draft = now.current;
      set(null);
      if (draft) void send(draft);
    },
  };
}
