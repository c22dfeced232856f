/** Which images of a metric can be shown, and at which iterations. Pure. */

import type { ImageRow } from "./samples";

export interface Shown {
  readonly metric: string;
  readonly variant: string;
  readonly iter: number;
  readonly url: string;
}

export interface Series {
  readonly variant: string;
  /** By iteration; one at least. */
  readonly images: readonly Shown[];
}

/**
 * The images of each variant that still exist.
 *
 * The SDK writes over the files of older iterations: with the iterations 1 to 4 in the files a, b, c, a, the file a shows
 * iteration 4, and iteration 1 is gone. So of each file only the last iteration is left, and nothing before the least of
 * these.
 */
export function seriesOf(rows: readonly ImageRow[], variants: readonly string[]): Series[] {
  return variants.flatMap((variant) => {
    const ours = rows
      .flatMap((row) => (row.variant === variant && row.url ? [{ ...row, url: row.url }] : []))
      .toSorted((one, other) => one.iter - other.iter);
    const last = new Map(ours.map((row) => [row.url, row.iter]));
    const least = Math.min(...last.values());
    const images = ours.filter((row) => row.iter >= least && last.get(row.url) === row.iter);
    return images.length ? [{ variant, images }] : [];
  });
}

/** The iterations that any of the series has, ascending. */
export function iterationsOf(series: readonly Series[]): number[] {
  return [...new Set(series.flatMap(({ images }) => images.map(({ iter }) => iter)))].toSorted(
    (one, other) => one - other,
  );
}

/** The last iteration up to `wanted`, else the first one; the newest for null. null if there are none. */
export function nearest(iterations: readonly number[], wanted: number | null): number | null {
  if (wanted === null) return iterations.at(-1) ?? null;
  return iterations.findLast((iter) => iter <= wanted) ?? iterations[0] ?? null;
}

/** The image of each series at an iteration; with null the newest of each. */
export function atIteration(series: readonly Series[], iteration: number | null): Shown[] {
  return series.flatMap(({ images }) =>
    iteration === null ? [images.at(-1)!] : images.filter(({ iter }) => iter === iteration),
  );
}
