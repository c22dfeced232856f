/** Asks who wants in. Afterwards one is where one wanted to go. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

import { ServerError } from "../../api/client";
import { wordsOf } from "../../api/errors";
import { useAsked } from "../../hooks/asked";
import { focused } from "../../hooks/focused";
import { query } from "../../state/address";
import {
  type CameBack,
  cameBackWith,
  findModes,
  goOn,
  leaveForProvider,
  pathAfter,
  signIn,
  signInByLink,
  signInByName,
  signInByProvider,
} from "../../state/signing";
import css from "./SignIn.module.css";

const WRONG_PASSWORD = "No user has this name and password, and no access key this secret.";
const WRONG_LINK =
  "This link has been used, or is older than ten minutes. The command “apiserver link” prints another.";

export function SignIn(): JSX.Element {
  const asked = useAsked("modes", findModes);
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState("");
  const [wait, setWait] = useCountdown();

  /** Run one way of signing in. If it fails, say why: of 401 what is `wrong`, or else what the server says. */
  async function attempt(way: () => Promise<void>, wrong?: string): Promise<void> {
    setBusy(true);
    setFailure("");
    setWait(0);
    try {
      await way();
    } catch (error) {
      setBusy(false);
      if (!(error instanceof Error)) throw error;
      if (error instanceof ServerError && error.status === 429) setWait(Math.ceil(error.retryAfter ?? 1) || 1);
      else if (!wrong || !(error instanceof ServerError) || error.status !== 401) setFailure(wordsOf(error));
      else {
        setFailure(wrong);
        setPassword((typed) => (typed === password ? "" : typed));
      }
    }
  }

  /** Sign in one way, and go on. */
  function signInBy(way: () => Promise<void>, wrong: string): void {
    void attempt(async () => {
      await way();
      goOn(next);
    }, wrong);
  }

  const next = query.value.get("next");
  // biome-ignore lint/correctness/useExhaustiveDependencies: what the address brought is taken once, when the page is opened
  useEffect(() => {
    const link = takeLink();
    const cameBack = takeCameBack();
    if (link) signInBy(() => signInByLink(link), WRONG_LINK);
    else if (cameBack) void attempt(async () => goOn(await signInByProvider(cameBack)));
  }, []);

  const modes = asked.value;
  const needsPassword = modes?.password ?? true;
  const guest = modes?.guest;
  return (
    <main class={css["page"]}>
      <form
        class={css["form"]}
        onSubmit={(event) => {
          event.preventDefault();
          signInBy(() => (needsPassword ? signIn(name, password) : signInByName(name.trim())), WRONG_PASSWORD);
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
            ref={focused}
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
        <button type="submit" class="primary" disabled={busy || wait > 0}>
          {busy ? "Signing in…" : "Sign in"}
        </button>
        {modes?.provider && (
          <button
            type="button"
            disabled={busy}
            onClick={() =>
              void attempt(async () => {
                await leaveForProvider(pathAfter(next, location.origin));
                setBusy(false); // who comes back without signing in finds this page as it was
              })
            }
          >
            Sign in with {modes.provider}
          </button>
        )}
        {guest && (
          <button
            type="button"
            disabled={busy}
            onClick={() => signInBy(() => signIn(guest.name, guest.password), WRONG_PASSWORD)}
          >
            Look around as a guest
          </button>
        )}
        <p class={css["failure"]} role="alert">
          {wait > 0
            ? `Too many attempts have failed. Try again in ${wait} ${wait === 1 ? "second" : "seconds"}.`
            : failure || (asked.error ? wordsOf(asked.error) : "")}
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

/** What the provider sent the browser back with. It is taken out of the address at once, too. */
function takeCameBack(): CameBack | null {
  const cameBack = cameBackWith(location.search);
  if (cameBack !== null) history.replaceState(null, "", location.pathname);
  return cameBack;
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
