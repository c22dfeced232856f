/** Named views of a project's table, and short addresses of what is seen. The server keeps both. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { data, post } from "../../api/client";
import { useAsked } from "../../hooks/asked";
import { focused } from "../../hooks/focused";
import { useOnce, useShown } from "../../hooks/once";
import { ALL } from "../../routes";
import { go, here } from "../../state/address";
import { user } from "../../state/session";
import { attempt, say } from "../../state/toasts";
import { Dialog } from "../../ui/Dialog";
import css from "../../ui/Forms.module.css";
import { Menu, type MenuItem } from "../../ui/Menu";

export interface View {
  readonly id: string;
  readonly address: string;
  readonly name: string | null;
  readonly shared: boolean;
  readonly user: string;
  /** The short address. */
  readonly short: string;
}

/** The short address of a page; the server keeps what it stands for. */
export async function shortened(address: string): Promise<string> {
  return (await post<View>("/data/views", { address })).short;
}

export function Views({ project }: { project: string }): JSX.Element {
  const asked = useAsked(project, (signal) => data<View[]>("/data/views", { project }, signal));
  const [saving, setSaving] = useState(false);
  const views = asked.value ?? [];
  const others = (shared: boolean): MenuItem[] =>
    views
      .filter((view) => view.shared === shared)
      .map((view) => ({ label: view.name ?? "", run: () => go(view.address), checked: view.address === here.value }));
  const mine = others(false);
  const shared = others(true);
  const changes: (MenuItem | null)[] = [
    { label: "Save this view…", run: () => setSaving(true) },
    ...(views.length ? [{ label: "Delete a view…", run: () => setDeleting(true) }] : []),
    null,
    { label: "Copy a short address", run: () => void copyShort() },
  ];
  const items: (MenuItem | string | null)[] = [
    ...(mine.length ? ["My views", ...mine, null] : []),
    ...(shared.length ? ["Views for everybody", ...shared, null] : []),
    ...(user.value?.role === "guest" ? ["Guests save no views"] : changes),
  ];
  const [deleting, setDeleting] = useState(false);
  return (
    <>
      <Menu items={items} label="Views">
        Views ▾
      </Menu>
      {saving && <Save project={project} onClose={() => setSaving(false)} saved={asked.again} />}
      {deleting && (
        <Dialog title="Delete views" onClose={() => setDeleting(false)}>
          <ul class={css["rows"]}>
            {views.map((view) => (
              <li key={view.id}>
                <span>
                  {view.name}
                  {view.shared && " (for everybody)"}
                </span>
                <Delete view={view} deleted={asked.again} />
              </li>
            ))}
          </ul>
          {!views.length && <p>There are no views any more.</p>}
        </Dialog>
      )}
    </>
  );
}

function Delete({ view, deleted }: { view: View; deleted: () => void }): JSX.Element {
  const [busy, once] = useOnce();
  async function act(): Promise<void> {
    await attempt(() => post(`/data/views/${encodeURIComponent(view.id)}/delete`, {}), `Deleted ${view.name}`);
    deleted();
  }
  return (
    <button
      type="button"
      class="danger"
      disabled={view.user !== user.value?.id && user.value?.role !== "admin"}
      aria-busy={busy}
      onClick={() => void once(act)}
    >
      Delete
    </button>
  );
}

async function copyShort(): Promise<void> {
  await attempt(async () => {
    const short = location.origin + (await shortened(here.value));
    try {
      await navigator.clipboard.writeText(short);
      say(`Copied ${short}`);
    } catch {
      say(short); // the browser lets no page write to the clipboard: it can be copied from here
    }
  });
}

function Save({ project, onClose, saved }: { project: string; onClose: () => void; saved: () => void }): JSX.Element {
  const [name, setName] = useState("");
  const [shared, setShared] = useState(false);
  const [busy, once] = useOnce();
  const isShown = useShown();
  async function save(): Promise<void> {
    const view = { address: here.value, name: name.trim(), project, shared };
    if (!(await attempt(() => post("/data/views", view), `Saved ${view.name}`))) return;
    if (isShown()) onClose();
    saved();
  }
  return (
    <Dialog title="Save this view" onClose={onClose}>
      <form
        class={css["form"]}
        onSubmit={(event) => {
          event.preventDefault();
          void once(save);
        }}
      >
        <label>
          Name
          <input
            value={name}
            maxLength={200}
            required
            ref={focused}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
        <label>
          <input type="checkbox" checked={shared} onChange={() => setShared(!shared)} /> Everybody sees it
        </label>
        <p class={css["hint"]}>
          It keeps columns, order, filters, groups, pinned, hidden and coloured runs
          {project === ALL ? "" : " of this project"}. A view of the same name is replaced.
        </p>
        <div class={css["buttons"]}>
          <button type="submit" class="primary" disabled={!name.trim()} aria-busy={busy}>
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}
