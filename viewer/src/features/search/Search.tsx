/** Search over everything: /search?q=words, and with kind=runs only over one kind. */

import type { JSX } from "preact";

import { useTitle } from "../../hooks/title";
import { adjust, query } from "../../state/address";
import { KINDS, type Kind, TITLES } from "./kinds";
import css from "./Search.module.css";
import { SearchBox } from "./SearchBox";

const COUNT = 10;
/** Of one kind alone. */
const MOST = 200;

export function Search(): JSX.Element {
  const text = query.value.get("q") ?? "";
  const kind = KINDS.find((one) => one === query.value.get("kind"));
  useTitle(text ? `${text} – Search` : "Search");
  return (
    <div class={css["page"]}>
      <h1>Search</h1>
      <div class={css["kinds"]} role="group" aria-label="What is searched">
        {[undefined, ...KINDS].map((one) => (
          <button
            key={one ?? "all"}
            type="button"
            aria-pressed={one === kind}
            onClick={() => adjust({ kind: one ?? null }, { push: true })}
          >
            {one ? TITLES[one] : "Everything"}
          </button>
        ))}
      </div>
      <SearchBox
        key={kind ?? "all"}
        text={text}
        onText={(q) => adjust({ q })}
        count={kind ? MOST : COUNT}
        {...(kind && { kinds: [kind] satisfies Kind[] })}
        onMore={(more) => adjust({ kind: more }, { push: true })}
      />
    </div>
  );
}
