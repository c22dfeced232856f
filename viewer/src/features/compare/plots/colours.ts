/** Colours for values of a column. */

/** Blue over green to yellow (as matplotlib's "viridis", whose lightness grows evenly), for a place from 0 to 1. */
const STEPS: Readonly<Record<"dark" | "light", readonly (readonly [number, number, number])[]>> = {
  light: [
    [68, 1, 84],
    [59, 82, 139],
    [33, 145, 140],
    [74, 170, 70],
    [214, 160, 0],
  ],
  dark: [
    [98, 84, 196],
    [64, 128, 214],
    [46, 176, 166],
    [122, 209, 81],
    [253, 231, 37],
  ],
};

/** The colour of a place from 0 to 1. */
export function gradient(place: number, dark: boolean): string {
  const steps = STEPS[dark ? "dark" : "light"];
  const at = Math.min(1, Math.max(0, place)) * (steps.length - 1);
  const [low, high] = [steps[Math.floor(at)]!, steps[Math.ceil(at)]!];
  const part = at - Math.floor(at);
  return `rgb(${low.map((value, n) => Math.round(value + (high[n]! - value) * part)).join(" ")})`;
}
