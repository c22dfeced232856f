/**
 * Reads curves from the binary form of data (`….bin`): blocks of a JSON header and columns of little-endian numbers.
 *
 * A block is a uint32 (bytes of the header), the header, and for each of its series: x as 64-bit floats, unless the
 * header says that x are even, then each column, filled up to a multiple of 8 bytes. A long series goes on in the next
 * block.
 */

/** One curve: `x` and each column have `rows` numbers. Without buckets the column is `value`. */
export interface Curve {
  readonly task?: string;
  readonly group?: string;
  readonly metric: string;
  readonly variant: string;
  readonly rows: number;
  readonly x: Float64Array;
  readonly columns: Readonly<Record<string, Float32Array | Float64Array>>;
}

interface Head {
  columns: string[];
  bytes: 4 | 8;
  series: {
    task?: string;
    group?: string;
    metric: string;
    variant: string;
    rows: number;
    x: [number, number] | null;
  }[];
}

/** The curves of an answer. They are views of `content`, which is not copied, but for even x and where blocks meet. */
export function curvesOf(content: ArrayBuffer): Curve[] {
  const curves: Curve[] = [];
  const view = new DataView(content);
  let place = 0;
  while (place < content.byteLength) {
    const size = view.getUint32(place, true);
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(content, place + 4, size))) as Head;
    place += 4 + size;
    for (const { x: even, ...series } of head.series) {
      let x: Float64Array;
      if (even) {
        const [first, step] = even;
        x = new Float64Array(series.rows);
        for (let n = 0; n < x.length; n++) x[n] = first + n * step;
      } else {
        x = new Float64Array(content, place, series.rows);
        place += 8 * series.rows;
      }
      const columns: Record<string, Float32Array | Float64Array> = {};
      for (const name of head.columns) {
        columns[name] = new (head.bytes === 4 ? Float32Array : Float64Array)(content, place, series.rows);
        place += 8 * Math.ceil((head.bytes * series.rows) / 8);
      }
      const before = curves.at(-1);
      const curve = { ...series, x, columns };
      if (before && sameSeries(before, curve)) curves[curves.length - 1] = joined(before, curve);
      else curves.push(curve);
    }
  }
  return curves;
}

function sameSeries(one: Curve, other: Curve): boolean {
  const { task, group, metric, variant } = other;
  return one.metric === metric && one.variant === variant && one.task === task && one.group === group;
}

function joined(one: Curve, other: Curve): Curve {
  const rows = one.rows + other.rows;
  const columns: Record<string, Float32Array | Float64Array> = {};
  for (const [name, first] of Object.entries(one.columns)) {
    const second = other.columns[name]!;
    const narrow = first instanceof Float32Array && second instanceof Float32Array;
    const both = narrow ? new Float32Array(rows) : new Float64Array(rows);
    both.set(first);
    both.set(second, one.rows);
    columns[name] = both;
  }
  const x = new Float64Array(rows);
  x.set(one.x);
  x.set(other.x, one.rows);
  return { ...one, rows, x, columns };
}
