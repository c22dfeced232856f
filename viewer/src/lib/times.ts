/** Times and numbers in words. Pure, but for the clock that is passed in. */

const STEPS: readonly (readonly [seconds: number, unit: Intl.RelativeTimeFormatUnit])[] = [
  [60, "second"],
  [3600, "minute"],
  [86400, "hour"],
  [7 * 86400, "day"],
  [31 * 86400, "week"],
  [366 * 86400, "month"],
  [Infinity, "year"],
];
const SECONDS: Readonly<Partial<Record<Intl.RelativeTimeFormatUnit, number>>> = {
  second: 1,
  minute: 60,
  hour: 3600,
  day: 86400,
  week: 7 * 86400,
  month: 30.44 * 86400,
  year: 365.25 * 86400,
};
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "long" });

/** "3 minutes ago" for a time in milliseconds since 1970. */
export function ago(time: number, now: number): string {
  const seconds = (time - now) / 1000;
  if (Math.abs(seconds) < 5) return "now";
  const unit = (STEPS.find(([bound]) => Math.abs(seconds) < bound) ?? STEPS.at(-1)!)[1];
  return relative.format(Math.round(seconds / (SECONDS[unit] ?? 1)), unit);
}

/** "2 h 5 min" for milliseconds: the two greatest units. */
export function duration(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  const parts: [number, string][] = [
    [Math.floor(seconds / 86400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "min"],
    [seconds % 60, "s"],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  if (first < 0) return "0 s";
  const shown = parts.slice(first, first + 2).filter(([count]) => count > 0);
  return shown.map(([count, unit]) => `${count} ${unit}`).join(" ");
}

/** A number as people write it: at most six significant digits, very large and very small ones with an exponent. */
export function short(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "∞" : "−∞";
  const size = Math.abs(value);
  if (value !== 0 && (size < 1e-4 || size >= 1e7))
    return value
      .toExponential(3)
      .replace("e+", "e")
      .replace(/\.?0+e/, "e");
  return String(Number(value.toPrecision(6)));
}

/** A value as the API answers it: null stands for NaN and infinities. */
export function valueText(value: number | null): string {
  return value === null ? "not finite" : short(value);
}

const grouping = new Intl.NumberFormat("en-US");

/** 1204331 → "1,204,331". */
export function counted(value: number): string {
  return grouping.format(value);
}
