/** What belongs to who is signed in: their name, their access keys, the theme of this browser. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import { api } from "../api/client";
import { Ago } from "../parts/Ago";
import { Ask } from "../parts/Ask";
import { useAsked } from "../parts/asked";
import { Dialog } from "../parts/Dialog";
import { LongText } from "../parts/LongText";
import { Failed } from "../parts/Notice";
import { Section } from "../parts/Section";
import { attempt } from "../parts/Toast";
import { findUser, theme, user, type Theme } from "../state/session";
import { clientConfiguration } from "./settings/configuration";
import css from "./Settings.module.css";

export function Settings(): JSX.Element {
  useEffect(() => {
    document.title = "Settings";
  }, []);
  return (
    <div class={css["page"]}>
      <h1>Settings</h1>
      <Profile />
      <Keys />
      <Appearance />
      {user.value?.role === "admin" && <Users />}
    </div>
  );
}

function Profile(): JSX.Element {
  const who = user.value;
  const [name, setName] = useState(who?.name ?? "");
  async function save(): Promise<void> {
    if (await attempt(() => api("users.update", { user: who?.id, name: name.trim() }), "Your name is saved")) await findUser();
  }
  return (
    <Section title="You">
      <form
        class={css["line"]}
        onSubmit={(event) => {
          event.preventDefault();
          void save();
        }}
      >
        <label>
          Name
          <input value={name} required maxLength={200} readOnly={who?.role === "guest"} onInput={(event) => setName(event.currentTarget.value)} />
        </label>
        {who?.role !== "guest" && (
          <button type="submit" disabled={!name.trim() || name.trim() === who?.name}>
            Save
          </button>
        )}
      </form>
      <p class={css["soft"]}>
        Role: {who?.role}. Company: {who?.company.name}.
      </p>
    </Section>
  );
}

interface Key {
  readonly access_key: string;
  readonly label?: string | null;
  readonly last_used?: string | null;
  readonly last_used_from?: string | null;
}

function Keys(): JSX.Element {
  const asked = useAsked("keys", (signal) => api<{ credentials: Key[] }>("auth.get_credentials", {}, signal));
  const [label, setLabel] = useState("");
  const [made, setMade] = useState<{ access_key: string; secret_key: string } | null>(null);
  const [revoking, setRevoking] = useState<Key | null>(null);
  const keys = asked.value?.credentials ?? [];
  const mayMake = user.value?.role !== "guest";
  async function create(): Promise<void> {
    await attempt(async () => {
      const body = label.trim() ? { label: label.trim() } : {};
      setMade((await api<{ credentials: { access_key: string; secret_key: string } }>("auth.create_credentials", body)).credentials);
      setLabel("");
    });
    asked.again();
  }
  async function rename(key: Key, wanted: string): Promise<void> {
    const body = { access_key: key.access_key, label: wanted || null };
    if (await attempt(() => api("auth.edit_credentials", body), "The label is saved")) asked.again();
  }
  return (
    <Section title="Access keys" count={keys.length}>
      <p class={css["soft"]}>Programs sign in with an access key and its secret. Revoke a key that somebody else may know.</p>
      {asked.error && <Failed error={asked.error} again={asked.again} />}
      {keys.length > 0 && (
        <div class={css["scroll"]}>
          <table class={css["table"]}>
            <thead>
              <tr>
                <th scope="col">Key</th>
                <th scope="col">Label</th>
                <th scope="col">Last used</th>
                <th scope="col">
                  <span class="hidden-but-read">Revoke</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {keys.map((key) => (
                <tr key={key.access_key}>
                  <th scope="row">
                    <code>{key.access_key}</code>
                  </th>
                  <td>
                    {mayMake ? (
                      <input
                        aria-label={`Label of ${key.access_key}`}
                        defaultValue={key.label ?? ""}
                        maxLength={200}
                        onChange={(event) => void rename(key, event.currentTarget.value.trim())}
                      />
                    ) : (
                      key.label
                    )}
                  </td>
                  <td>
                    {key.last_used ? <Ago time={key.last_used} /> : "never"}
                    {key.last_used_from && ` from ${key.last_used_from}`}
                  </td>
                  <td>
                    {mayMake && (
                      <button type="button" class="danger" aria-label={`Revoke ${key.access_key}`} onClick={() => setRevoking(key)}>
                        Revoke
                      </button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {mayMake && (
        <form
          class={css["line"]}
          onSubmit={(event) => {
            event.preventDefault();
            void create();
          }}
        >
          <label>
            Label of a new key
            <input value={label} maxLength={200} placeholder="laptop" onInput={(event) => setLabel(event.currentTarget.value)} />
          </label>
          <button type="submit" class="primary">
            Make a key
          </button>
        </form>
      )}
      {made && (
        <Dialog title="Your new access key" onClose={() => setMade(null)}>
          <p>
            The secret is shown <strong>only now</strong>. Save this as <code>~/clearml.conf</code>:
          </p>
          <LongText
            text={clientConfiguration(location.origin, made.access_key, made.secret_key)}
            what="configuration"
            fileName="clearml.conf"
          />
        </Dialog>
      )}
      {revoking && (
        <Ask
          title="Revoke this access key?"
          button="Revoke"
          danger
          close={() => setRevoking(null)}
          act={() => api("auth.revoke_credentials", { access_key: revoking.access_key })}
          done="The key is revoked"
          after={asked.again}
        >
          <p>
            Programs that use <code>{revoking.access_key}</code> {revoking.label && `(${revoking.label}) `}are refused at once. So is
            this page, if you signed in with it.
          </p>
        </Ask>
      )}
    </Section>
  );
}

function Appearance(): JSX.Element {
  return (
    <Section title="Appearance">
      <div class={css["line"]}>
        <label>
          Theme
          <select value={theme.value} onChange={(event) => (theme.value = event.currentTarget.value as Theme)}>
            <option value="system">As the system</option>
            <option value="light">Light</option>
            <option value="dark">Dark</option>
          </select>
        </label>
      </div>
    </Section>
  );
}

interface OneUser {
  readonly id: string;
  readonly name: string;
  readonly role?: string;
  readonly created?: string;
}

const MOST_USERS = 500;

function Users(): JSX.Element {
  const asked = useAsked("users", (signal) => {
    const body = { only_fields: ["name", "role", "created"], order_by: ["name"], page: 0, page_size: MOST_USERS };
    return api<{ users: OneUser[] }>("users.get_all", body, signal);
  });
  const users = asked.value?.users ?? [];
  return (
    <Section title="Users" count={users.length}>
      {asked.error && <Failed error={asked.error} again={asked.again} />}
      <ul class={css["users"]}>
        {users.map((one) => (
          <li key={one.id}>
            {one.name} <span class={css["soft"]}>{one.role}</span>
          </li>
        ))}
      </ul>
      <p class={css["soft"]}>
        On the server's machine, <code>apiserver user</code> adds and changes users.
      </p>
    </Section>
  );
}
