/** What can be done to the selected runs. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useOnce, useShown } from "../../hooks/once";
import { isActive, leftOut, runsText, split } from "../../lib/possible";
import { counted } from "../../lib/times";
import { addressOf, go } from "../../state/address";
import { attempt, say } from "../../state/toasts";
import { Menu } from "../../ui/Menu";
import { shortened } from "../views/Views";
import { AskForSome, Outcomes, QueueDialog, TagDialog } from "./ManyDialogs";
import { type Chosen, cloneMany, doToMany, MOST_COMPARED, type Outcome, outcomeText, readChosen } from "./many";
import { marks } from "./marks";
import type { Shown } from "./shown";
import css from "./Table.module.css";
import { WhatGoes } from "./WhatGoes";

interface Props {
  readonly ids: readonly string[];
  readonly project: string;
  readonly shown: Shown;
  readonly change: (part: Partial<Shown>) => void;
  /** Something was done, but not to the runs `left`: the rows may be others. */
  readonly done: (left: readonly string[]) => void;
  readonly clear: () => void;
}

/** Runs that are cloned at once. */
const MOST_CLONED = 100;
/** Characters of an address above which a short one is made. */
const LONG_ADDRESS = 1500;

type Asked = "tag" | "delete" | "abort" | "enqueue" | "archive" | null;
type Progress = (tried: number) => void;
type Act = Parameters<typeof doToMany>[1];

const archiveMany: Act = (some) => api("tasks.archive_many", { ids: some });

export function Actions({ ids, project, shown, change, done, clear }: Props): JSX.Element {
  const [asked, setAsked] = useState<Asked>(null);
  const [working, setWorking] = useState<{ did: string; tried: number; of: number } | null>(null);
  const [went, setWent] = useState<{ did: string; outcome: Outcome; names: ReadonlyMap<string, string> } | null>(null);
  const [, once] = useOnce();
  const isShown = useShown();
  const close = (): void => setAsked(null);

  /** `did`: what was done, such as "Archived". `note` is said behind it. Runs that it failed for stay selected. */
  async function run(act: (progress: Progress) => Promise<Outcome>, of: number, did: string, note = ""): Promise<void> {
    close();
    setWorking({ did, tried: 0, of });
    const outcome = await act((tried) => setWorking({ did, tried, of }));
    setWorking(null);
    const left = [...outcome.failed.map(({ id }) => id), ...outcome.untried];
    if (left.length) {
      const first = await readChosen(left.slice(0, 1000)).catch(() => []);
      setWent({ did, outcome, names: new Map(first.map(({ id, name }) => [id, name])) });
    } else {
      say([outcomeText(did, outcome), note].filter(Boolean).join(". "));
    }
    done(left);
  }

  function runFor(runs: readonly Chosen[], did: string, act: Act, note = ""): void {
    const all = runs.map(({ id }) => id);
    void run((progress) => doToMany(all, act, progress), all.length, did, note);
  }

  /** Archive at once, but ask first if that ends runs. */
  async function archive(): Promise<void> {
    await attempt(async () => {
      const { can, others } = split("archive", await readChosen(ids));
      if (can.some(isActive))
        setAsked((now) => now ?? "archive"); // a dialog that was opened meanwhile stays
      else runFor(can, "Archived", archiveMany, leftOut("archive", others));
    });
  }

  async function restore(): Promise<void> {
    await attempt(async () => {
      const { can, others } = split("restore", await readChosen(ids));
      runFor(can, "Restored", (some) => api("tasks.unarchive_many", { ids: some }), leftOut("restore", others));
    });
  }

  async function clone(): Promise<void> {
    await attempt(async () => {
      const { can } = split("clone", await readChosen(ids));
      await run((progress) => cloneMany(can, progress), can.length, "Cloned");
    });
  }

  async function compare(): Promise<void> {
    const address = addressOf({ page: "compare", project }, { tasks: ids.join(",") });
    if (address.length <= LONG_ADDRESS) return go(address);
    const short = await shortened(address).catch(() => address);
    if (isShown()) go(short);
  }

  if (working) {
    return (
      <div class={css["actions"]} role="toolbar" aria-label="What to do with the selected runs">
        <strong role="status">
          {working.did} {counted(working.tried)} of {runsText(working.of)}…
        </strong>
        <progress value={working.tried} max={working.of} aria-label={working.did} />
      </div>
    );
  }
  return (
    <div class={css["actions"]} role="toolbar" aria-label="What to do with the selected runs">
      <strong role="status">{counted(ids.length)} selected</strong>
      <button
        type="button"
        class="primary"
        disabled={ids.length < 2 || ids.length > MOST_COMPARED}
        title={
          ids.length > MOST_COMPARED
            ? `At most ${counted(MOST_COMPARED)} runs`
            : ids.length < 2
              ? "Select two or more runs"
              : ""
        }
        onClick={() => void once(compare)}
      >
        Compare
      </button>
      <button type="button" onClick={() => setAsked("tag")}>
        Tags
      </button>
      <Menu label="Mark the selected runs" items={marks(ids, shown, change, clear)}>
        Mark ▾
      </Menu>
      <button type="button" onClick={() => setAsked("enqueue")}>
        Enqueue
      </button>
      <button
        type="button"
        disabled={ids.length > MOST_CLONED}
        title={ids.length > MOST_CLONED ? `At most ${MOST_CLONED} at once` : ""}
        onClick={() => void once(clone)}
      >
        Clone
      </button>
      <button type="button" onClick={() => setAsked("abort")}>
        Abort
      </button>
      {shown.archived ? (
        <button type="button" onClick={() => void once(restore)}>
          Restore
        </button>
      ) : (
        <button type="button" onClick={() => void once(archive)}>
          Archive
        </button>
      )}
      <button type="button" class="danger" onClick={() => setAsked("delete")}>
        Delete
      </button>
      <button type="button" aria-label="Select none" onClick={clear}>
        ×
      </button>
      {asked === "tag" && (
        <TagDialog
          count={ids.length}
          close={close}
          act={(tags) =>
            void run(
              (progress) => doToMany(ids, (some) => api("tasks.update_tags", { ids: some, ...tags }), progress),
              ids.length,
              "Changed the tags of",
            )
          }
        />
      )}
      {asked === "enqueue" && (
        <QueueDialog
          ids={ids}
          close={close}
          act={(runs, queue) => runFor(runs, "Enqueued", (some) => api("tasks.enqueue_many", { ids: some, queue }))}
        />
      )}
      {asked === "abort" && (
        <AskForSome
          action="abort"
          verb="Abort"
          ids={ids}
          close={close}
          act={(runs) => runFor(runs, "Aborted", (some) => api("tasks.stop_many", { ids: some }))}
        >
          <p>What they have reported stays.</p>
        </AskForSome>
      )}
      {asked === "archive" && (
        <AskForSome
          action="archive"
          verb="Archive"
          ids={ids}
          close={close}
          act={(runs) => runFor(runs, "Archived", archiveMany)}
        >
          <p>Those that are running or queued are aborted. What they have reported stays.</p>
        </AskForSome>
      )}
      {asked === "delete" && (
        <AskForSome
          action="delete"
          verb="Delete"
          ids={ids}
          close={close}
          act={(runs) => runFor(runs, "Deleted", (some) => api("tasks.delete_many", { ids: some }))}
          archive={(runs) => runFor(runs, "Archived", archiveMany)}
        >
          <p>They can't be brought back. This goes with them:</p>
          <WhatGoes />
        </AskForSome>
      )}
      {went && <Outcomes {...went} close={() => setWent(null)} />}
    </div>
  );
}
