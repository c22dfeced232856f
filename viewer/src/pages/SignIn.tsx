/** Asks who wants in. Afterwards one is where one wanted to go. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import { ServerError } from "../api/client";
import { wordsOf } from "../parts/Notice";
import { query } from "../state/address";
import { findModes, pathAfter, signIn, signInByLink, signInByName, type Modes } from "../state/signing";
import css from "./SignIn.module.css";

const WRONG_PASSWORD = "No user has this name and password, and no access key this secret.";
const WRONG_LINK =
  "This link has been used, or is older than ten minutes. The command “apiserver link” prints another.";

export function SignIn(): JSX.Element {
  const [modes, setModes] = useState<Modes | null>(null);
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState("");
  const [wait, setWait] = useCountdown();

  /** Run one way of signing in, and leave this page if it succeeds. */
  async function attempt(way: () => Promise<void>, wrong: string): Promise<void> {
    setBusy(true);
    setFailure("");
    setWait(0);
    try {
      await way();
      location.replace(pathAfter(query.value.get("next"), location.origin)); // loads anew, as this user
    } catch (error) {
      setBusy(false);
      setPassword("");
      if (!(error instanceof Error)) throw error;
      if (error instanceof ServerError && error.retryAfter !== null) setWait(Math.ceil(error.retryAfter) || 1);
      else setFailure(error instanceof ServerError && error.status === 401 ? wrong : wordsOf(error));
    }
  }

  useEffect(() => {
    const link = takeLink();
    if (link) void attempt(() => signInByLink(link), WRONG_LINK);
    findModes().then(setModes, (error: Error) => setFailure(wordsOf(error)));
  }, []);

  const needsPassword = modes?.password ?? true;
  const guest = modes?.guest;
  return (
    <main class={css["page"]}>
      <form
        class={css["form"]}
        onSubmit={(event) => {
          event.preventDefault();
          void attempt(() => (needsPassword ? signIn(name, password) : signInByName(name.trim())), WRONG_PASSWORD);
        }}
      >
        <h1>Sign in</h1>
        <label>
          Name
          <input
            autocomplete="username"
            autocapitalize="none"
            spellcheck={false}
            required
            autofocus
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </label>
        {needsPassword && (
          <label>
            Password
            <input
              type="password"
              autocomplete="current-password"
              required
              value={password}
              onInput={(event) => setPassword(event.currentTarget.value)}
            />
          </label>
        )}
        <button class="primary" disabled={busy || wait > 0}>
          {busy ? "Signing in…" : "Sign in"}
        </button>
        {guest && (
          <button
            type="button"
            disabled={busy}
            onClick={() => void attempt(() => signIn(guest.name, guest.password), WRONG_PASSWORD)}
          >
            Look around as a guest
          </button>
        )}
        <p class={css["failure"]} role="alert">
          {wait > 0 ? `Too many attempts have failed. Try again in ${wait} ${wait === 1 ? "second" : "seconds"}.` : failure}
        </p>
        <p class={css["hint"]}>
          {needsPassword
            ? "An access key and its secret, as in clearml.conf, sign in, too."
            : "A name is enough. A new name is a new user."}
        </p>
      </form>
    </main>
  );
}

/** The secret of a link that signs in. It is taken out of the address at once, so that nobody reads or shares it. */
function takeLink(): string | null {
  const link = new URLSearchParams(location.hash.slice(1)).get("link");
  if (link !== null) history.replaceState(null, "", location.pathname + location.search);
  return link;
}

/** Seconds that become fewer by themselves. */
function useCountdown(): [number, (seconds: number) => void] {
  const [left, setLeft] = useState(0);
  useEffect(() => {
    if (left <= 0) return;
    const timer = setTimeout(() => setLeft(left - 1), 1000);
    return () => clearTimeout(timer);
  }, [left]);
  return [left, setLeft];
}
