/** How long to wait before the server is asked once more. Pure. */

/** Milliseconds: the first pause after the connection was lost, and the longest one. */
const FIRST = 1000;
const LONGEST = 5000;

/**
 * Milliseconds before a lost server is looked for again, after so many vain attempts. `chance`, from 0 to 1, makes the
 * pauses of many pages differ, so that they do not all come back at once.
 */
export function pauseAfter(attempts: number, chance: number): number {
  return Math.min(FIRST * 2 ** attempts, LONGEST) * (0.75 + chance / 4);
}

/** Milliseconds after which everything is asked again though the server was never away: less and less often. */
export function pauseAfterDoubts(doubts: number): number {
  return FIRST * 4 ** Math.min(doubts, 8);
}
