/** A short address: asks what it stands for, and goes there. */

import type { JSX } from "preact";

import { data } from "../api/client";
import { useAsked } from "../hooks/asked";
import { placeOf } from "../routes";
import { replace } from "../state/address";
import { Failed, Waiting } from "../ui/Notice";

export function Short({ id }: { id: string }): JSX.Element {
  const asked = useAsked(id, async (signal) => {
    const { address } = await data<{ address: string }>(`/data/views/${encodeURIComponent(id)}`, {}, signal);
    if (!/^\/(?![/\\])/.test(address)) throw new Error("the address leads to another server");
    const { page } = placeOf(new URL(address, location.origin).pathname);
    if (page === "short" || page === "sign-in") throw new Error("the address leads on to another one");
    replace(address);
    return address;
  });
  return asked.error ? <Failed error={asked.error} again={asked.again} /> : <Waiting />;
}
