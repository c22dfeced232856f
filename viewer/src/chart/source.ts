/**
 * Where the lines of charts come from: one run, many runs, or groups of runs. To draw charts of something else, make
 * another ChartSource and give it to `Charts` with a list of ChartSpec; the rest (requests, zoom, crosshair, smoothing,
 * menus) follows.
 *
 *     <Charts source={ofRuns(project, tasks)} charts={[{ id: "loss", title: "loss", metric: "loss", variants: null }]}
 *             view={view} onView={change} name="compare" />
 */

import { bytes, dataAddress, type Query } from "../api/client";
import { type Curve, curvesOf } from "../api/columns";
import type { Range } from "./align";
import { type Look, looks } from "./line";

/** What x of a curve is: iterations, milliseconds since its start, or milliseconds since 1970. */
export type Axis = "iter" | "relative" | "timestamp";

/** What is asked of curves. */
export interface Ask {
  readonly metrics: readonly string[];
  /** null: all of them. */
  readonly variants: readonly string[] | null;
  readonly axis: Axis;
  /** About how many buckets each curve is put together in. */
  readonly points: number;
  /** Such as "ema:0.9"; "": as it is. */
  readonly smooth: string;
  /** null: all of it. */
  readonly range: Range | null;
  /** Which numbers each bucket has. */
  readonly columns: readonly ("count" | "mean" | "min" | "max" | "not_finite")[];
}

export interface ChartSource {
  /** The tasks whose changes are followed. */
  readonly tasks: readonly string[];
  /** The curves, in buckets. */
  curves(ask: Ask, signal: AbortSignal): Promise<readonly Curve[]>;
  /** The address of all points as a file: `ending` is "csv" or "parquet". Null if there is none. */
  file(metric: string, variants: readonly string[] | null, ending: string): string;
  /** How the line of each curve of a chart looks. */
  looks(curves: readonly Curve[]): readonly Look[];
}

/** A chart: the curves of a metric. */
export interface ChartSpec {
  /** The same at all times: it names the chart in addresses and in what is remembered. */
  readonly id: string;
  readonly title: string;
  readonly metric: string;
  /** The variants that are drawn; null: all. */
  readonly variants: readonly string[] | null;
  /** How many variants there are, if not all are drawn. */
  readonly of?: number;
}

/** The curves of one run: a line for each variant. */
export function ofRun(task: string): ChartSource {
  const path = `/data/tasks/${encodeURIComponent(task)}/scalars`;
  return {
    tasks: [task],
    curves: async (ask, signal) => curvesOf(await bytes(`${path}.bin`, queryOf(ask), signal)),
    file: (metric, variants, ending) => dataAddress(`${path}.${ending}`, { metric, variant: variants }),
    looks: (curves) => {
      const found = looks(curves.map(({ variant }) => variant));
      return curves.map(({ variant }) => ({ key: variant, name: variant, ...found.get(variant)! }));
    },
  };
}

/** A run among others: its name, and a colour if it has one. */
export interface NamedRun {
  readonly id: string;
  readonly name: string;
}

/** The curves of many runs of a project (or of `*`): a line for each run and variant. Colours are by run. */
export function ofRuns(project: string, runs: readonly NamedRun[]): ChartSource {
  const path = `/data/projects/${encodeURIComponent(project)}/scalars`;
  const task = runs.map(({ id }) => id);
  const names = new Map(runs.map(({ id, name }) => [id, name]));
  const colours = looks(task);
  return {
    tasks: task,
    curves: async (ask, signal) =>
      curvesOf(await bytes(`${path}.bin`, { ...queryOf(ask), task, recursive: 1 }, signal)),
    file: (metric, variants, ending) =>
      dataAddress(`${path}.${ending}`, { metric, variant: variants, task, recursive: 1 }),
    looks: (curves) => {
      const several = new Set(curves.map(({ variant }) => variant)).size > 1;
      return curves.map(({ task: id = "", variant }) => ({
        key: `${id}/${variant}`,
        name: several ? `${names.get(id) ?? id} · ${variant}` : (names.get(id) ?? id),
        ...(colours.get(id) ?? [...looks([id]).values()][0]!),
      }));
    },
  };
}

/** What the line and the band of a group of runs are. */
export type Spread = "deviation" | "quartiles" | "extremes";

/**
 * One curve for each group of runs: those with the same value in the column `group`, such as `hyperparams.Args/lr`, or
 * with `bins` those of a range of values.
 * The line is the mean with the standard deviation around it, the median with the quartiles, or the mean between the
 * least and the greatest.
 */
export function ofGroups(
  project: string,
  runs: readonly string[],
  { group, bins, spread }: { readonly group: string; readonly bins: number | null; readonly spread: Spread },
): ChartSource {
  const path = `/data/projects/${encodeURIComponent(project)}/scalars`;
  const common = { task: runs, group, bins, recursive: 1 };
  return {
    tasks: runs,
    curves: async (ask, signal) => {
      const { columns: _, ...query } = queryOf(ask);
      return curvesOf(await bytes(`${path}.bin`, { ...query, ...common }, signal)).map((curve) =>
        spreadOf(curve, spread),
      );
    },
    file: (metric, variants, ending) => dataAddress(`${path}.${ending}`, { metric, variant: variants, ...common }),
    looks: (curves) => {
      const found = looks(curves.map(({ group: value = "" }) => value));
      const several = new Set(curves.map(({ variant }) => variant)).size > 1;
      return curves.map(({ group: value = "", variant }) => {
        const name = value === "" ? "(none)" : value;
        return { key: `${value}/${variant}`, name: several ? `${name} · ${variant}` : name, ...found.get(value)! };
      });
    },
  };
}

function spreadOf(curve: Curve, spread: Spread): Curve {
  const { columns } = curve;
  const mean = (spread === "quartiles" ? columns["q50"] : columns["mean"])!;
  const std = columns["std"]!;
  const [min, max] = {
    deviation: () => [mean.map((value, at) => value - std[at]!), mean.map((value, at) => value + std[at]!)] as const,
    quartiles: () => [columns["q25"]!, columns["q75"]!] as const,
    extremes: () => [columns["min"]!, columns["max"]!] as const,
  }[spread]();
  return { ...curve, columns: { mean, min, max, least: columns["min"]!, greatest: columns["max"]! } };
}

function queryOf({ metrics, variants, axis, points, smooth, range, columns }: Ask): Query {
  return {
    metric: metrics,
    variant: variants,
    points,
    columns: columns.join(","),
    axis: axis === "iter" ? null : axis,
    smooth: smooth || null,
    from: range && Math.floor(range[0]),
    to: range && Math.ceil(range[1]),
  };
}
