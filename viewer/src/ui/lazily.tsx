/** A component whose script is loaded when it is shown first, so that a page loads only what it needs. */

import type { ComponentType, JSX } from "preact";

import { noAnswer, ServerError, statusOf } from "../api/client";
import { useAsked } from "../hooks/asked";
import { reload } from "../state/address";
import { Failed, Waiting } from "./Notice";

/** `lazily(async () => (await import("./Run")).Run)`: the component that an `import()` gives. */
export function lazily<P extends object>(load: () => Promise<ComponentType<P>>): (props: P) => JSX.Element {
  let found: ComponentType<P> | null = null;
  return function Lazily(props: P): JSX.Element {
    const asked = useAsked(found ? null : "load", async () => {
      try {
        found = await load();
      } catch {
        throw (await statusOf("/livez")) ? OTHER_BUILD : noAnswer();
      }
    });
    if (found) {
      const Found = found;
      return <Found {...props} />;
    }
    if (!asked.error) return <Waiting />;
    return <Failed error={asked.error} again={asked.error instanceof ServerError ? asked.again : reload} />;
  };
}

/** The scripts of another build have other names. */
const OTHER_BUILD = new Error("a part of it could not be loaded; if the server was updated, load the page again");
