/** The status of a run: a point of its colour, which beats while the run is running, and the word. */

import type { JSX } from "preact";

import { statusText } from "../lib/status";
import css from "./Status.module.css";

export function Status({ status }: { status: string }): JSX.Element {
  return (
    <span class={css["status"]} data-status={status}>
      {statusText(status)}
    </span>
  );
}
