/** Entries of menus that pin, hide and colour runs: of one run, or of those that are selected. */

import type { MenuItem } from "../../ui/Menu";
import { COLOURS, type Shown } from "./shown";

/** Runs that can be marked at once: they are in the address. */
const MOST_MARKED = 200;
const COLOUR_NAMES = ["Blue", "Orange", "Green", "Pink", "Violet", "Teal", "Ochre", "Grey"];

/** `hidden` is called when the runs are hidden. */
export function marks(
  ids: readonly string[],
  shown: Shown,
  change: (part: Partial<Shown>) => void,
  hidden: () => void = () => undefined,
): (MenuItem | string)[] {
  const why = ids.length > MOST_MARKED ? `At most ${MOST_MARKED} runs at once` : null;
  const others = shown.pinned.filter((id) => !ids.includes(id));
  const allPinned = ids.every((id) => shown.pinned.includes(id));

  function colour(number: number | null): void {
    const colours = { ...shown.colours };
    for (const id of ids) {
      if (number === null) delete colours[id];
      else colours[id] = number;
    }
    change({ colours });
  }

  return [
    {
      label: allPinned ? "Unpin" : "Pin to the top",
      why,
      run: () => change({ pinned: allPinned ? others : [...new Set([...shown.pinned, ...ids])] }),
    },
    {
      label: "Hide",
      why,
      run: () => {
        change({ hidden: [...new Set([...shown.hidden, ...ids])], pinned: others });
        hidden();
      },
    },
    "Colour",
    ...COLOUR_NAMES.slice(0, COLOURS).map((label, number) => ({ label, why, run: () => colour(number) })),
    { label: "No colour", run: () => colour(null) },
  ];
}
