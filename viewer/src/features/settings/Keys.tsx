/** The access keys of who is signed in: what each allows, and when it was last used. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { api } from "../../api/client";
import type { CredentialKey, Credentials } from "../../api/endpoints";
import { useAsked } from "../../hooks/asked";
import { useOnce } from "../../hooks/once";
import { user } from "../../state/session";
import { attempt } from "../../state/toasts";
import { Ago } from "../../ui/Ago";
import { Ask } from "../../ui/Ask";
import { Dialog } from "../../ui/Dialog";
import { LongText } from "../../ui/LongText";
import { Failed } from "../../ui/Notice";
import { Section } from "../../ui/Section";
import { clientConfiguration } from "./configuration";
import { Entries } from "./Entries";
import css from "./Settings.module.css";

/** What a new key may be made for: the scope, and what to call it. Without a scope, it allows what its owner may do. */
const SCOPES = [
  ["", "Everything I may do"],
  ["write", "Runs: all but keys and users"],
  ["read", "Only reading"],
  ["events", "Only sending events"],
  ["files", "Only files"],
] as const;
const DAYS = [
  ["", "Never"],
  ["7", "In a week"],
  ["30", "In 30 days"],
  ["365", "In a year"],
] as const;
type Scope = (typeof SCOPES)[number][0];
type Days = (typeof DAYS)[number][0];
const SECONDS_A_DAY = 86_400;

/** What a key allows: "read, events in a project, until 24/12/2026". */
function allowed(key: CredentialKey): string {
  const said = [key.scopes ? key.scopes.join(", ") : "everything"];
  if (key.project) said.push("in one project");
  if (key.expires) {
    const end = new Date(key.expires);
    said.push(`${end.getTime() > Date.now() ? "until" : "expired on"} ${end.toLocaleDateString()}`);
  }
  return said.join(", ");
}

interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly options: readonly (readonly [value: T, text: string])[];
  readonly choose: (value: T) => void;
}

function Choice<T extends string>({ label, value: chosen, options, choose }: ChoiceProps<T>): JSX.Element {
  return (
    <label>
      {label}
      <select
        value={chosen}
        onChange={({ currentTarget }) => choose(options[currentTarget.selectedIndex]?.[0] ?? chosen)}
      >
        {options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

export function Keys(): JSX.Element {
  const asked = useAsked("keys", (signal) => api("auth.get_credentials", {}, signal));
  const [label, setLabel] = useState("");
  const [scope, setScope] = useState<Scope>("");
  const [days, setDays] = useState<Days>("");
  const [made, setMade] = useState<Credentials | null>(null);
  const [revoking, setRevoking] = useState<CredentialKey | null>(null);
  const keys = asked.value?.credentials ?? [];
  const [making, once] = useOnce();
  const mayMake = user.value?.role !== "guest";
  async function create(): Promise<void> {
    await attempt(async () => {
      const body = {
        ...(label.trim() && { label: label.trim() }),
        ...(scope && { scopes: [scope] }),
        ...(days && { expiration_sec: Number(days) * SECONDS_A_DAY }),
      };
      setMade((await api("auth.create_credentials", body)).credentials);
      setLabel((typed) => (typed === label ? "" : typed));
    });
    asked.again();
  }
  async function rename(key: CredentialKey, wanted: string): Promise<void> {
    const body = { access_key: key.access_key, label: wanted || null };
    if (await attempt(() => api("auth.edit_credentials", body), "The label is saved")) asked.again();
  }
  return (
    <Section title="Access keys" count={keys.length}>
      <p class={css["soft"]}>
        Programs sign in with an access key and its secret. Revoke a key that somebody else may know.
      </p>
      {asked.error && <Failed error={asked.error} again={asked.again} />}
      {keys.length > 0 && (
        <Entries columns={["Key", "Label", "Allows", "Last used"]} action="Revoke">
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
              <td data-label="Allows" title={key.project ? `Project ${key.project}` : undefined}>
                {allowed(key)}
              </td>
              <td data-label="Last used">
                {key.last_used ? <Ago time={key.last_used} /> : "never"}
                {key.last_used_from && ` from ${key.last_used_from}`}
              </td>
              <td>
                {mayMake && (
                  <button
                    type="button"
                    class="danger"
                    aria-label={`Revoke ${key.access_key}`}
                    onClick={() => setRevoking(key)}
                  >
                    Revoke
                  </button>
                )}
              </td>
            </tr>
          ))}
        </Entries>
      )}
      {mayMake && (
        <form
          class={css["line"]}
          onSubmit={(event) => {
            event.preventDefault();
            void once(create);
          }}
        >
          <label>
            Label of a new key
            <input
              value={label}
              maxLength={200}
              placeholder="laptop"
              onInput={(event) => setLabel(event.currentTarget.value)}
            />
          </label>
          <Choice label="It allows" value={scope} options={SCOPES} choose={setScope} />
          <Choice label="It ends" value={days} options={DAYS} choose={setDays} />
          <button type="submit" class="primary" aria-busy={making}>
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
            Programs that use <code>{revoking.access_key}</code> {revoking.label && `(${revoking.label}) `}are refused
            at once. So is this page, if you signed in with it.
          </p>
        </Ask>
      )}
    </Section>
  );
}
