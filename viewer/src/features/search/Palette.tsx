/** The search over the page, opened by a key from everywhere. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";

import { go } from "../../state/address";
import { Dialog } from "../../ui/Dialog";
import css from "./Palette.module.css";
import { SearchBox } from "./SearchBox";

const COUNT = 5;

export function Palette({ onClose }: { onClose: () => void }): JSX.Element {
  const [text, setText] = useState("");
  return (
    <Dialog title="Search" onClose={onClose}>
      <div class={css["palette"]}>
        <SearchBox
          text={text}
          onText={setText}
          count={COUNT}
          onOpen={onClose}
          onMore={(kind) => {
            onClose();
            go({ page: "search" }, { q: text, kind });
          }}
        />
      </div>
    </Dialog>
  );
}
