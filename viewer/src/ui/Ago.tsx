/** How long ago something was; the exact time shows on hover. It stays true while the page is open. */

import { signal } from "@preact/signals";
import type { JSX } from "preact";

import { ago } from "../lib/times";

const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 10_000);

/** `time`: as the API gives it (ISO 8601), or milliseconds since 1970. */
export function Ago({ time }: { time: string | number | null | undefined }): JSX.Element | null {
  if (time === null || time === undefined || time === "") return null;
  const date = new Date(time);
  return (
    <time dateTime={date.toISOString()} title={date.toLocaleString()}>
      {ago(date.getTime(), Math.max(now.value, Date.now()))}
    </time>
  );
}
