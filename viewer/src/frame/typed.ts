/**
 * Arrays of numbers as plotly.py writes them since its version 6: `{"dtype": "f8", "bdata": "<base64>", "shape": "2, 3"}`,
 * little-endian, rows first. Plotly reads them itself in most places, but not in the cells of tables. Pure.
 */

const READERS: Readonly<Record<string, (bytes: ArrayBuffer) => ArrayLike<number>>> = {
  i1: (bytes) => new Int8Array(bytes),
  u1: (bytes) => new Uint8Array(bytes),
  u1c: (bytes) => new Uint8ClampedArray(bytes),
  i2: (bytes) => new Int16Array(bytes),
  u2: (bytes) => new Uint16Array(bytes),
  i4: (bytes) => new Int32Array(bytes),
  u4: (bytes) => new Uint32Array(bytes),
  f4: (bytes) => Array.from(new Float32Array(bytes), shortest),
  f8: (bytes) => new Float64Array(bytes),
};
/** An empty array may say any number of rows. */
const MOST_EMPTY_ROWS = 10_000;

/** The numbers of a typed array of one or two dimensions, or the value itself if it is none. NaN is null, as in JSON. */
export function plainArray(value: unknown): unknown {
  if (typeof value !== "object" || value === null || !("bdata" in value)) return value;
  const { dtype, bdata, shape } = value as Readonly<Record<string, unknown>>;
  const numbers = numbersOf(String(dtype), String(bdata));
  if (!numbers) return value;
  const [rows = 0, columns, ...more] = shape === undefined ? [numbers.length] : String(shape).split(",").map(Number);
  if (more.length || rows * (columns ?? 1) !== numbers.length) return value;
  if (columns === undefined) return numbers;
  if (!numbers.length && rows > MOST_EMPTY_ROWS) return value;
  return Array.from({ length: rows }, (_, row) => numbers.slice(row * columns, (row + 1) * columns));
}

function numbersOf(dtype: string, bdata: string): (number | null)[] | null {
  const read = Object.hasOwn(READERS, dtype) ? READERS[dtype] : undefined;
  try {
    const bytes = Uint8Array.from(atob(bdata), (one) => one.charCodeAt(0));
    return read ? Array.from(read(bytes.buffer), (one) => (Number.isFinite(one) ? one : null)) : null;
  } catch {
    return null; // no base64, or a number is cut
  }
}

/** A number of 32 bits with as few digits as tell it from others: 0.1 instead of 0.10000000149011612. */
function shortest(value: number): number {
  const short = [6, 7, 8].map((digits) => +value.toPrecision(digits));
  return short.find((one) => Math.fround(one) === value) ?? value;
}
