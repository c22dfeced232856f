/**
 * Rows and pixels of a scrolled list that may be higher than a browser can make an element. Pure.
 *
 * Browsers cut elements at some 17 to 33 million pixels, which are 1 to 2 million lines. So a list is at most HIGHEST
 * pixels high, and one pixel of its scroll bar may stand for several pixels of rows. What follows from that:
 *
 * - A small move, by the wheel or a finger, moves the rows by as many pixels. A large one, by the scroll bar, goes to the
 *   same part of the list. A pixel of the bar is thousands of pixels of the list, so the two are easily told apart.
 * - After small moves the bar is not quite where it should be. `settled` says where that is, once the moves have ended.
 * - Near both ends, one pixel is one pixel: small moves reach the first and the last row.
 *
 * For example, 10 million rows of 18 pixels, seen in a window of 800: the list is 8 million pixels high. With
 * the scroll bar in its middle, row 4,999,978 is at the top. The wheel turned by 90 pixels then brings row 4,999,983 there.
 */

/** The highest element, in pixels. */
export const HIGHEST = 8_000_000;
/** Larger moves of the scroll bar go to a part of the list; smaller ones move by pixels. */
export const LARGE_MOVE = 2500;
/** So many pixels at both ends are not scaled. */
const ENDS = 100_000;

export interface Scale {
  /** Pixels of all rows together. */
  readonly whole: number;
  /** Pixels of the element. */
  readonly height: number;
  /** Pixels of the window. */
  readonly view: number;
}

/** Where a list is: how far it is scrolled, as the browser says, and which pixel of its rows is at the top. */
export interface Where {
  readonly scrolled: number;
  readonly top: number;
}

export function scaleOf(rows: number, rowHeight: number, view: number): Scale {
  const whole = rows * rowHeight;
  return { whole, height: Math.min(whole, HIGHEST), view };
}

/** The last pixel that can be at the top. */
export function lastTop({ whole, view }: Scale): number {
  return Math.max(0, whole - view);
}

/** How far the browser can scroll. */
function lastScrolled({ height, view }: Scale): number {
  return Math.max(0, height - view);
}

/** How many pixels at each end are not scaled. */
function endsOf(scale: Scale): number {
  return Math.min(ENDS, lastScrolled(scale) / 4);
}

/** Which pixel of the rows is at the top if the list is scrolled so far. */
export function topOf(scale: Scale, scrolled: number): number {
  return mapped(scrolled, endsOf(scale), lastScrolled(scale), lastTop(scale));
}

/** The reverse of `topOf`. */
export function scrolledOf(scale: Scale, top: number): number {
  return mapped(top, endsOf(scale), lastTop(scale), lastScrolled(scale));
}

/** Both ends of 0…from are kept; what lies between them is stretched, or pressed together, to fill 0…to. */
function mapped(value: number, ends: number, from: number, to: number): number {
  const inside = Math.min(Math.max(value, 0), from);
  if (from === to || inside <= ends) return Math.min(inside, to);
  if (inside >= from - ends) return to - (from - inside);
  return ends + ((inside - ends) * (to - 2 * ends)) / (from - 2 * ends);
}

/** Where the list is after the browser has scrolled it. */
export function moved(scale: Scale, before: Where, scrolled: number): Where {
  const by = scrolled - before.scrolled;
  const atAnEnd = scrolled <= 0 || scrolled >= lastScrolled(scale);
  if (scale.whole === scale.height || atAnEnd || Math.abs(by) >= LARGE_MOVE)
    return { scrolled, top: topOf(scale, scrolled) };
  return { scrolled, top: Math.min(Math.max(before.top + by, 0), lastTop(scale)) };
}

/** Where the list is if a pixel of the rows shall be at the top: after small moves, and to go to a row. */
export function settled(scale: Scale, top: number): Where {
  const inside = Math.min(Math.max(top, 0), lastTop(scale));
  return { top: inside, scrolled: scrolledOf(scale, inside) };
}
