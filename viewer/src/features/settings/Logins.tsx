/** Where who is signed in is signed in elsewhere, and ending that. */

import type { JSX } from "preact";

import { api } from "../../api/client";
import type { Body } from "../../api/questions";
import { useAsked } from "../../hooks/asked";
import { useOnce } from "../../hooks/once";
import { user } from "../../state/session";
import { attempt } from "../../state/toasts";
import { Ago } from "../../ui/Ago";
import { Failed } from "../../ui/Notice";
import { Section } from "../../ui/Section";
import { Entries } from "./Entries";
import css from "./Settings.module.css";

const MOST_LOGINS = 50;

export function Logins(): JSX.Element {
  const asked = useAsked("logins", (signal) => api("users.get_sessions", {}, signal));
  const logins = asked.value?.sessions ?? [];
  const mayEnd = user.value?.role !== "guest";
  const [, once] = useOnce();
  function end(body: Body<"users.end_sessions">, done: string): void {
    void once(async () => {
      if (await attempt(() => api("users.end_sessions", body), done)) asked.again();
    });
  }
  return (
    <Section title="Logins" count={logins.length}>
      <p class={css["soft"]}>Where you are signed in, in browsers and programs. End a login that you do not know.</p>
      {asked.error && <Failed error={asked.error} again={asked.again} />}
      {logins.length > 0 && (
        <Entries columns={["From", "Program", "Last used"]} action="End">
          {logins.slice(0, MOST_LOGINS).map((login) => (
            <tr key={login.id}>
              <th scope="row">{login.worker || login.address}</th>
              <td>{login.agent}</td>
              <td data-label="Last used">
                <Ago time={login.last_used} />
              </td>
              <td>
                {login.current
                  ? "this one"
                  : mayEnd && (
                      <button
                        type="button"
                        aria-label={`End the login from ${login.worker || login.address}`}
                        onClick={() => end({ sessions: [login.id] }, "The login has ended")}
                      >
                        End
                      </button>
                    )}
              </td>
            </tr>
          ))}
        </Entries>
      )}
      {mayEnd && logins.length > 1 && (
        <button type="button" onClick={() => end({ others: true }, "All other logins have ended")}>
          End all others
        </button>
      )}
    </Section>
  );
}
