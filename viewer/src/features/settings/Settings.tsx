/** What belongs to who is signed in: their name, their access keys and logins, the theme of this browser. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import { useAsked } from "../../hooks/asked";
import { useOnce } from "../../hooks/once";
import { useTitle } from "../../hooks/title";
import { findUser, type Theme, theme, user } from "../../state/session";
import { attempt } from "../../state/toasts";
import { Link } from "../../ui/Link";
import { Failed } from "../../ui/Notice";
import { Section } from "../../ui/Section";
import { Keys } from "./Keys";
import { Logins } from "./Logins";
import css from "./Settings.module.css";

export function Settings(): JSX.Element {
  useTitle("Settings");
  return (
    <div class={css["page"]}>
      <h1>Settings</h1>
      <Profile />
      <Keys />
      <Logins />
      <Appearance />
      <Section title="Storage">
        <p>
          <Link to={{ page: "usage" }}>Usage</Link> shows how much each project and run keeps.
        </p>
      </Section>
      {user.value?.role === "admin" && (
        <Section title="Audit log">
          <p>
            <Link to={{ page: "audit" }}>Audit log</Link> says who did what, from where and when.
          </p>
        </Section>
      )}
      {user.value?.role === "admin" && <Users />}
    </div>
  );
}

function Profile(): JSX.Element {
  const who = user.value;
  const [name, setName] = useState(who?.name ?? "");
  const [, once] = useOnce();
  async function save(): Promise<void> {
    if (!who) return;
    const body = { user: who.id, name: name.trim() };
    if (await attempt(() => api("users.update", body), "Your name is saved")) await findUser();
  }
  return (
    <Section title="You">
      <form
        class={css["line"]}
        onSubmit={(event) => {
          event.preventDefault();
          void once(save);
        }}
      >
        <label>
          Name
          <input
            value={name}
            required
            maxLength={200}
            readOnly={who?.role === "guest"}
            onInput={(event) => setName(event.currentTarget.value)}
          />
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

const MOST_USERS = 500;

function Users(): JSX.Element {
  const asked = useAsked("users", (signal) => {
    const only_fields = ["name", "role", "created"] as const;
    return api("users.get_all", { only_fields, order_by: ["name"], page: 0, page_size: MOST_USERS }, signal);
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
