/** Links to pages of the viewer: they are shown without loading the document anew. */

import type { AnchorHTMLAttributes, ComponentChildren, JSX } from "preact";

import type { Place } from "../routes";
import { addressOf, go, type Parameters } from "../state/address";

type Rest = Pick<AnchorHTMLAttributes<HTMLAnchorElement>, "class" | "title" | "tabIndex" | "aria-selected"> & {
  readonly [name: `data-${string}`]: string;
  readonly role?: "tab" | "menuitem" | "option" | "treeitem";
  readonly "aria-label"?: string;
  readonly "aria-current"?: "page" | "true";
};

type Props = Rest & {
  to: Place;
  with?: Parameters;
  children: ComponentChildren;
};

export function Link({ to, with: parameters, ...rest }: Props): JSX.Element {
  return <AddressLink {...rest} address={addressOf(to, parameters)} />;
}

/** A link to a page whose address is known, such as one that somebody wrote into a text. */
export function AddressLink({
  address,
  children,
  ...rest
}: Rest & { address: string; children: ComponentChildren }): JSX.Element {
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
