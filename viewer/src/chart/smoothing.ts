/** The smoothings that the server has, and their sliders. Pure. */

export interface Slider {
  readonly steps: number;
  readonly usual: number;
  readonly ofStep: (step: number) => number;
  readonly toStep: (amount: number) => number;
}

export interface Smoothing {
  /** As the server calls it; "" is none. */
  readonly name: string;
  readonly label: string;
  readonly slider: Slider | null;
}

/** Weights from 0 to 0.999: above 0.9, a step is a tenth as long, and above 0.99 a hundredth. */
const WEIGHT: Slider = {
  steps: 108,
  usual: 0.6,
  ofStep: (step) =>
    Number((step <= 90 ? step / 100 : step <= 99 ? 0.9 + (step - 90) / 100 : 0.99 + (step - 99) / 1000).toFixed(3)),
  toStep: (weight) =>
    Math.round(weight <= 0.9 ? weight * 100 : weight <= 0.99 ? 90 + (weight - 0.9) * 100 : 99 + (weight - 0.99) * 1000),
};

/** Odd windows: 3, 5, 9, 15, 25, … each about 1.5 times as long as the one before, up to 1001. */
const WINDOWS = [3, 5, 9, 15, 25, 41, 61, 101, 151, 251, 401, 601, 1001] as const;
const WINDOW: Slider = {
  steps: WINDOWS.length - 1,
  usual: 25,
  ofStep: (step) => WINDOWS[step] ?? 25,
  toStep: (points) => WINDOWS.findLastIndex((window) => window <= points) + (points < 3 ? 1 : 0),
};

const NONE: Smoothing = { name: "", label: "None", slider: null };

export const SMOOTHINGS: readonly Smoothing[] = [
  NONE,
  { name: "ema", label: "Exponential", slider: WEIGHT },
  { name: "x_ema", label: "Exponential by x", slider: WEIGHT },
  { name: "mean", label: "Mean of points", slider: WINDOW },
  { name: "median", label: "Median of points", slider: WINDOW },
  { name: "derivative", label: "Derivative", slider: null },
];

/** "ema:0.9" → the exponential smoothing, 0.9. */
export function smoothingOf(text: string): { kind: Smoothing; amount: number } {
  const [name = "", amount] = text.split(":");
  const kind = SMOOTHINGS.find((one) => one.name === name) ?? NONE;
  return { kind, amount: amount === undefined ? (kind.slider?.usual ?? 0) : Number(amount) };
}

export function textOfSmoothing(kind: Smoothing, amount: number): string {
  return kind.slider ? `${kind.name}:${amount}` : kind.name;
}
