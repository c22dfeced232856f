/** What stands above plots and images: the search by name, and the iteration that the address chooses for all. */

import type { ComponentChildren, JSX } from "preact";

import { counted } from "../../lib/times";
import { adjust, query } from "../../state/address";
import { SearchField } from "../../ui/SearchField";
import { chosenIn } from "./chosen";
import css from "./Samples.module.css";

interface Props {
  what: string;
  all: number;
  shown: number;
  children?: ComponentChildren;
}

export function SampleBar({ what, all, shown, children }: Props): JSX.Element {
  const chosen = chosenIn(query.value);
  const text = query.value.get("q") ?? "";
  return (
    <div class={css["bar"]} role="search">
      <SearchField label={`Search ${what} by name`} value={text} onInput={(q) => adjust({ q })} />
      {text && (
        <span role="status">
          {counted(shown)} of {counted(all)}
        </span>
      )}
      {(chosen.all !== null || chosen.of.size > 0) && (
        <button type="button" onClick={() => adjust({ iter: null, at: null }, { push: true })}>
          {chosen.all === null ? "Show the newest of all" : `Iteration ${counted(chosen.all)} ×`}
        </button>
      )}
      {children}
    </div>
  );
}
