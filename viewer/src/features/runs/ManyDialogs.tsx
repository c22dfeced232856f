/** The dialogs that ask before something is done to many runs, and the one that says for which of them it failed. */

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useAsked } from "../../hooks/asked";
import { focused } from "../../hooks/focused";
import { type ActionName, isActive, leftOut, runsText, split } from "../../lib/possible";
import { counted } from "../../lib/times";
import { Dialog } from "../../ui/Dialog";
import css from "../../ui/Forms.module.css";
import { Failed, Waiting } from "../../ui/Notice";
import { type Chosen, type Outcome, outcomeText, readChosen } from "./many";

/** Names that a dialog shows. */
const FEW_NAMES = 5;
/** Failures that are listed. */
const FEW_FAILURES = 20;

interface AskProps {
  readonly action: ActionName;
  /** "Delete" */
  readonly verb: string;
  readonly ids: readonly string[];
  readonly close: () => void;
  /** Called with the runs for which the action is possible. */
  readonly act: (runs: readonly Chosen[]) => void;
  /** Archive these instead, if that is offered. */
  readonly archive?: (runs: readonly Chosen[]) => void;
  /** What the action means. */
  readonly children: ComponentChildren;
}

/** Reads the chosen runs, names those for which an action is possible, and says which ones are left out. */
export function AskForSome({ action, verb, ids, close, act, archive, children }: AskProps): JSX.Element {
  const asked = useAsked("chosen", (signal) => readChosen(ids, signal));
  const runs = asked.value ?? [];
  const { can, others } = split(action, runs);
  const archivable = archive ? split("archive", runs).can : [];
  const which =
    can.length && can.length < runs.length
      ? `${counted(can.length)} of ${runsText(runs.length)}`
      : runsText(ids.length);
  return (
    <Dialog title={`${verb} ${which}?`} onClose={close}>
      <form
        class={css["form"]}
        onSubmit={(event) => {
          event.preventDefault();
          act(can);
        }}
      >
        {asked.error && <Failed error={asked.error} again={asked.again} />}
        {asked.waiting && <Waiting what="Reading the runs" />}
        {can.length > 0 && <Names runs={can} />}
        {can.length > 0 && children}
        {others.length > 0 && <p role="note">{leftOut(action, others)}</p>}
        {archivable.some(isActive) && <p class={css["hint"]}>Archiving aborts runs that are running or queued.</p>}
        <div class={css["buttons"]}>
          <button type="button" onClick={close}>
            Cancel
          </button>
          {archivable.length > 0 && (
            <button type="button" onClick={() => archive?.(archivable)}>
              Archive {runsText(archivable.length)} instead
            </button>
          )}
          {can.length > 0 && (
            <button type="submit" class="danger">
              {verb} {runsText(can.length)}
            </button>
          )}
        </div>
      </form>
    </Dialog>
  );
}

/** The first names, and how many more there are. */
function Names({ runs }: { runs: readonly Chosen[] }): JSX.Element {
  const more = runs.length - FEW_NAMES;
  return (
    <ul>
      {runs.slice(0, FEW_NAMES).map(({ id, name }) => (
        <li key={id}>
          <strong>{name}</strong>
        </li>
      ))}
      {more > 0 && <li>and {counted(more)} more</li>}
    </ul>
  );
}

interface OutcomesProps {
  readonly did: string;
  readonly outcome: Outcome;
  readonly names: ReadonlyMap<string, string>;
  readonly close: () => void;
}

/** Says how many runs something was done to, and for which it failed, with the server's reasons. */
export function Outcomes({ did, outcome, names, close }: OutcomesProps): JSX.Element {
  const { failed, untried, problem } = outcome;
  const more = failed.length - FEW_FAILURES;
  return (
    <Dialog title={outcomeText(did, outcome)} onClose={close}>
      <div class={css["form"]}>
        {problem && (
          <p role="alert">
            Not done for {runsText(untried.length)}: {problem}
          </p>
        )}
        {failed.length > 0 && (
          <>
            <p>The server refused {runsText(failed.length)}:</p>
            <ul>
              {failed.slice(0, FEW_FAILURES).map(({ id, reason }) => (
                <li key={id}>
                  <strong>{names.get(id) ?? id}</strong>: {reason}
                </li>
              ))}
              {more > 0 && <li>and {counted(more)} more</li>}
            </ul>
          </>
        )}
        <p class={css["hint"]}>These runs stay selected.</p>
        <div class={css["buttons"]}>
          <button type="button" onClick={close}>
            Close
          </button>
        </div>
      </div>
    </Dialog>
  );
}

interface TagProps {
  readonly count: number;
  readonly close: () => void;
  readonly act: (tags: { add_tags: string[]; remove_tags: string[] }) => void;
}

export function TagDialog({ count, close, act }: TagProps): JSX.Element {
  const [add, setAdd] = useState("");
  const [remove, setRemove] = useState("");
  const known = useAsked("tags", (signal) => api("projects.get_task_tags", {}, signal));
  const tags = (text: string): string[] => [
    ...new Set(
      text
        .split(",")
        .map((tag) => tag.trim())
        .filter(Boolean),
    ),
  ];
  return (
    <Dialog title={`Tags of ${runsText(count)}`} onClose={close}>
      <form
        class={css["form"]}
        onSubmit={(event) => {
          event.preventDefault();
          act({ add_tags: tags(add), remove_tags: tags(remove) });
        }}
      >
        <label>
          Add
          <input
            value={add}
            list="known-tags"
            ref={focused}
            placeholder="best, baseline"
            onInput={(event) => setAdd(event.currentTarget.value)}
          />
        </label>
        <label>
          Remove
          <input
            value={remove}
            list="known-tags"
            placeholder="old"
            onInput={(event) => setRemove(event.currentTarget.value)}
          />
        </label>
        <datalist id="known-tags">
          {known.value?.tags.map((tag) => (
            <option key={tag} value={tag} />
          ))}
        </datalist>
        <p class={css["hint"]}>Several with commas between them.</p>
        <div class={css["buttons"]}>
          <button type="submit" class="primary" disabled={!tags(add).length && !tags(remove).length}>
            Change the tags
          </button>
        </div>
      </form>
    </Dialog>
  );
}

interface QueueProps {
  readonly ids: readonly string[];
  readonly close: () => void;
  readonly act: (runs: readonly Chosen[], queue: string) => void;
}

export function QueueDialog({ ids, close, act }: QueueProps): JSX.Element {
  const runs = useAsked("chosen", (signal) => readChosen(ids, signal));
  const asked = useAsked("queues", (signal) => api("queues.get_all", { order_by: ["name"] }, signal));
  const [chosen, setChosen] = useState("");
  const { can, others } = split("enqueue", runs.value ?? []);
  const queues = asked.value?.queues ?? [];
  const queue = chosen || queues[0]?.id || "";
  const error = asked.error ?? runs.error;
  return (
    <Dialog title={`Enqueue ${runsText(ids.length)}`} onClose={close}>
      {error && <Failed error={error} />}
      {(asked.waiting || runs.waiting) && <Waiting />}
      {asked.value && !queues.length && (
        <p>There are no queues. An agent makes one: clearml-agent daemon --queue default --create-queue</p>
      )}
      {runs.value && queues.length > 0 && (
        <form
          class={css["form"]}
          onSubmit={(event) => {
            event.preventDefault();
            act(can, queue);
          }}
        >
          <label>
            Queue
            <select value={queue} onChange={(event) => setChosen(event.currentTarget.value)}>
              {queues.map(({ id, name, entries }) => (
                <option key={id} value={id}>
                  {name} ({counted(entries?.length ?? 0)} waiting)
                </option>
              ))}
            </select>
          </label>
          {others.length > 0 && <p role="note">{leftOut("enqueue", others)}</p>}
          <div class={css["buttons"]}>
            <button type="submit" class="primary" disabled={!can.length}>
              Enqueue {runsText(can.length)}
            </button>
          </div>
        </form>
      )}
    </Dialog>
  );
}
