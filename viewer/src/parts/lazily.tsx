/** A component whose script is loaded when it is shown first, so that a page loads only what it needs. */

import type { ComponentType, JSX } from "preact";

import { reload } from "../state/address";
import { useAsked } from "./asked";
import { Failed, Waiting } from "./Notice";

/** `lazily(async () => (await import("./Run")).Run)`: the component that an `import()` gives. */
export function lazily<P extends object>(load: () => Promise<ComponentType<P>>): (props: P) => JSX.Element {
  let found: ComponentType<P> | null = null;
  return function Lazily(props: P): JSX.Element {
    const asked = useAsked(found ? null : "load", async () => {
      found = await load();
    });
    if (found) {
      const Found = found;
      return <Found {...props} />;
    }
    return asked.error ? <Failed error={UNREACHABLE} again={reload} /> : <Waiting />;
  };
}

/** The scripts of another build have other names. */
const UNREACHABLE = new Error("a part of it could not be loaded; if the server was updated, load the page again");
