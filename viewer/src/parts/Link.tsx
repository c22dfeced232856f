/** A link to a page of the viewer: it is shown without loading the document anew. */

import type { AnchorHTMLAttributes, ComponentChildren, JSX } from "preact";

import type { Place } from "../routes";
import { addressOf, go, type Parameters } from "../state/address";

type Rest = Pick<AnchorHTMLAttributes<HTMLAnchorElement>, "class" | "title" | "tabIndex" | "aria-selected"> & {
  readonly [name: `data-${string}`]: string;
  readonly role?: "tab" | "menuitem" | "option" | "treeitem";
  readonly "aria-label"?: string;
  readonly "aria-current"?: "page";
};

type Props = Rest & {
  to: Place;
  with?: Parameters;
  children: ComponentChildren;
};

export function Link({ to, with: parameters, children, ...rest }: Props): JSX.Element {
  const address = addressOf(to, parameters);
  return (
    <a
      {...rest}
      href={address}
      onClick={(event) => {
        if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        go(address);
      }}
    >
      {children}
    </a>
  );
}
