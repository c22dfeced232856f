/** A table of what somebody has, such as access keys: a row each, with what ends it in the last cell. */

import type { ComponentChildren, JSX } from "preact";

import css from "./Settings.module.css";

interface Props {
  readonly columns: readonly string[];
  /** What the last column does, which has no heading to be seen. */
  readonly action: string;
  /** The rows. */
  readonly children: ComponentChildren;
}

export function Entries({ columns, action, children }: Props): JSX.Element {
  return (
    <div class={css["scroll"]}>
      <table class={`stacked ${css["table"]}`}>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
            <th scope="col">
              <span class="hidden-but-read">{action}</span>
            </th>
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
