/** What can be done to the selected runs. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { api } from "../api/client";
import { useAsked } from "../parts/asked";
import { Dialog } from "../parts/Dialog";
import { focused } from "../parts/focused";
import { Menu } from "../parts/Menu";
import { Waiting, wordsOf } from "../parts/Notice";
import { attempt, say } from "../parts/Toast";
import { counted } from "../parts/times";
import { addressOf, go } from "../state/address";
import css from "./Table.module.css";
import dialogs from "./Dialogs.module.css";
import { doToMany, MOST_COMPARED, runsText } from "./many";
import { marks } from "./marks";
import type { Shown } from "./shown";
import { shortened } from "./Views";

interface Props {
  readonly ids: readonly string[];
  readonly project: string;
  readonly shown: Shown;
  readonly change: (part: Partial<Shown>) => void;
  /** Something was done: the rows may be others. */
  readonly done: () => void;
  readonly clear: () => void;
}

/** Runs that are cloned at once. */
const MOST_CLONED = 100;
/** Characters of an address above which a short one is made. */
const LONG_ADDRESS = 1500;

type Asked = "tag" | "delete" | "abort" | "enqueue" | null;

export function Actions({ ids, project, shown, change, done, clear }: Props): JSX.Element {
  const [asked, setAsked] = useState<Asked>(null);
  const [progress, setProgress] = useState<number | null>(null);

  async function run(endpoint: string, more: object, did: string): Promise<void> {
    setAsked(null);
    setProgress(0);
    await doToMany(endpoint, ids, more, did, setProgress);
    setProgress(null);
    done();
  }

  async function compare(): Promise<void> {
    const address = addressOf({ page: "compare", project }, { tasks: ids.join(",") });
    if (address.length <= LONG_ADDRESS) return go(address);
    await attempt(async () => go(await shortened(address).catch(() => address)));
  }

  async function clone(): Promise<void> {
    let made = 0;
    setProgress(0);
    await attempt(async () => {
      for (const id of ids) {
        const { tasks } = await api<{ tasks: { name: string }[] }>("tasks.get_all", { id: [id], only_fields: ["name"] });
        await api("tasks.clone", { task: id, new_task_name: `Clone of ${tasks[0]?.name ?? id}` });
        setProgress(++made);
      }
    });
    setProgress(null);
    say(`Cloned ${runsText(made)}`);
    done();
  }

  return (
    <div class={css["actions"]} role="toolbar" aria-label="What to do with the selected runs">
      <strong role="status">
        {progress === null ? `${counted(ids.length)} selected` : `${counted(progress)} of ${counted(ids.length)} done…`}
      </strong>
      <button
        type="button"
        class="primary"
        disabled={ids.length < 2 || ids.length > MOST_COMPARED}
        title={ids.length > MOST_COMPARED ? `At most ${counted(MOST_COMPARED)} runs` : ids.length < 2 ? "Select two or more runs" : ""}
        onClick={() => void compare()}
      >
        Compare
      </button>
      <button type="button" onClick={() => setAsked("tag")}>
        Tags
      </button>
      <Menu
        label="Mark the selected runs"
        items={marks(ids, shown, change, clear)}
      >
        Mark ▾
      </Menu>
      <button type="button" onClick={() => setAsked("enqueue")}>
        Enqueue
      </button>
      <button
        type="button"
        disabled={ids.length > MOST_CLONED}
        title={ids.length > MOST_CLONED ? `At most ${MOST_CLONED} at once` : ""}
        onClick={() => void clone()}
      >
        Clone
      </button>
      <button type="button" onClick={() => setAsked("abort")}>
        Abort
      </button>
      {shown.archived ? (
        <button type="button" onClick={() => void run("tasks.unarchive_many", {}, "Restored")}>
          Restore
        </button>
      ) : (
        <button type="button" onClick={() => void run("tasks.archive_many", {}, "Archived")}>
          Archive
        </button>
      )}
      <button type="button" class="danger" onClick={() => setAsked("delete")}>
        Delete
      </button>
      <button type="button" aria-label="Select none" onClick={clear}>
        ×
      </button>
      {asked === "tag" && <TagDialog ids={ids} onClose={() => setAsked(null)} run={run} />}
      {asked === "enqueue" && <QueueDialog ids={ids} onClose={() => setAsked(null)} run={run} />}
      {asked === "abort" && (
        <Confirm
          title={`Abort ${runsText(ids.length)}?`}
          action="Abort"
          onClose={() => setAsked(null)}
          confirm={() => void run("tasks.stop_many", {}, "Aborted")}
        >
          Those that are running or queued stop. What they have reported stays.
        </Confirm>
      )}
      {asked === "delete" && (
        <DeleteDialog ids={ids} onClose={() => setAsked(null)} confirm={(force) => void run("tasks.delete_many", { force }, "Deleted")} />
      )}
    </div>
  );
}

interface ConfirmProps {
  readonly title: string;
  readonly action: string;
  readonly onClose: () => void;
  readonly confirm: () => void;
  readonly children: JSX.Element | string | (JSX.Element | string | null | false)[];
}

function Confirm({ title, action, onClose, confirm, children }: ConfirmProps): JSX.Element {
  return (
    <Dialog title={title} onClose={onClose}>
      <div class={dialogs["form"]}>
        <div>{children}</div>
        <div class={dialogs["buttons"]}>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <button type="button" class="danger" onClick={confirm}>
            {action}
          </button>
        </div>
      </div>
    </Dialog>
  );
}

/** Says what goes before it goes. */
function DeleteDialog({ ids, onClose, confirm }: { ids: readonly string[]; onClose: () => void; confirm: (force: boolean) => void }): JSX.Element {
  const [force, setForce] = useState(false);
  return (
    <Confirm title={`Delete ${runsText(ids.length)}?`} action={`Delete ${runsText(ids.length)}`} onClose={onClose} confirm={() => confirm(force)}>
      <p>
        Their curves, plots, images and logs go, too, with their artifacts and models on this server, but for models that
        other runs use. It can't be undone.
      </p>
      <label>
        <input type="checkbox" checked={force} onChange={() => setForce(!force)} /> Also those that are running or published
      </label>
    </Confirm>
  );
}

interface RunProps {
  readonly ids: readonly string[];
  readonly onClose: () => void;
  readonly run: (endpoint: string, more: object, did: string) => Promise<void>;
}

function TagDialog({ ids, onClose, run }: RunProps): JSX.Element {
  const [add, setAdd] = useState("");
  const [remove, setRemove] = useState("");
  const known = useAsked("tags", (signal) => api<{ tags: string[] }>("projects.get_task_tags", {}, signal));
  const tags = (text: string): string[] => [...new Set(text.split(",").map((tag) => tag.trim()).filter(Boolean))];
  return (
    <Dialog title={`Tags of ${runsText(ids.length)}`} onClose={onClose}>
      <form
        class={dialogs["form"]}
        onSubmit={(event) => {
          event.preventDefault();
          void run("tasks.update_tags", { add_tags: tags(add), remove_tags: tags(remove) }, "Changed the tags of");
        }}
      >
        <label>
          Add
          <input value={add} list="known-tags" ref={focused} placeholder="best, baseline" onInput={(event) => setAdd(event.currentTarget.value)} />
        </label>
        <label>
          Remove
          <input value={remove} list="known-tags" placeholder="old" onInput={(event) => setRemove(event.currentTarget.value)} />
        </label>
        <datalist id="known-tags">
          {known.value?.tags.map((tag) => <option key={tag} value={tag} />)}
        </datalist>
        <p class={dialogs["hint"]}>Several with commas between them.</p>
        <div class={dialogs["buttons"]}>
          <button type="submit" class="primary" disabled={!tags(add).length && !tags(remove).length}>
            Change the tags
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function QueueDialog({ ids, onClose, run }: RunProps): JSX.Element {
  const asked = useAsked("queues", (signal) =>
    api<{ queues: { id: string; name: string; entries?: unknown[] }[] }>("queues.get_all", { order_by: ["name"] }, signal),
  );
  const [chosen, setChosen] = useState("");
  const queues = asked.value?.queues ?? [];
  const queue = chosen || queues[0]?.id || "";
  return (
    <Dialog title={`Enqueue ${runsText(ids.length)}`} onClose={onClose}>
      {asked.error && <p role="alert">{wordsOf(asked.error)}</p>}
      {asked.waiting && <Waiting />}
      {asked.value && !queues.length && <p>There are no queues. An agent makes one: clearml-agent daemon --queue default --create-queue</p>}
      {queues.length > 0 && (
        <form
          class={dialogs["form"]}
          onSubmit={(event) => {
            event.preventDefault();
            void run("tasks.enqueue_many", { queue }, "Enqueued");
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
          <p class={dialogs["hint"]}>Only drafts can be enqueued: clone a run that has ended.</p>
          <div class={dialogs["buttons"]}>
            <button type="submit" class="primary">
              Enqueue
            </button>
          </div>
        </form>
      )}
    </Dialog>
  );
}
