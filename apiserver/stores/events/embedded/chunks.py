"""The codec of a chunk: up to `LARGEST` points of a series, its curve apart from the details that curves do without.

Values are float32 where that loses nothing, else float64; whole-number columns as `integers` has them.
"""

from __future__ import annotations

import itertools
import struct

import numpy as np

from apiserver.events.model import Float64Array, Int64Array
from apiserver.stores.events.embedded import integers
from apiserver.stores.events.embedded.points import Curve, Points

LARGEST = 4096

_CURVE = struct.Struct("<BI")  # bytes a value, bytes of iters
_DETAILS = struct.Struct("<II")  # bytes of timestamps, of workers


def encode_curve(iters: Int64Array, values: Float64Array) -> bytes:
    """Iterations and values."""
    encoded = integers.encode(iters)
    with np.errstate(over="ignore"):
        narrow = values.astype("<f4")
    lossless = bool(((narrow == values) | np.isnan(values)).all())
    packed = narrow if lossless else values
    return b"".join((_CURVE.pack(packed.itemsize, len(encoded)), encoded, packed.tobytes()))


def encode_details(timestamps: Int64Array, workers: Int64Array, received: Int64Array) -> bytes:
    """The other columns."""
    columns = [integers.encode(column) for column in (timestamps, workers, received)]
    return b"".join((_DETAILS.pack(len(columns[0]), len(columns[1])), *columns))


def decode_curve_into(body: bytes, iters: Int64Array, values: Float64Array) -> None:
    """Fill the two arrays, whose length is the chunk's."""
    width, size = _CURVE.unpack_from(body)
    integers.decode_into(memoryview(body)[_CURVE.size : _CURVE.size + size], iters)
    values[:] = np.frombuffer(body, f"<f{width}", offset=_CURVE.size + size)


def decode_curves(bodies: list[tuple[int, bytes]]) -> Curve:
    """The curves of adjacent chunks, given as (count, body), as one."""
    total = sum(count for count, _ in bodies)
    curve = Curve(np.empty(total, np.int64), np.empty(total, np.float64))
    start = 0
    for count, body in bodies:
        decode_curve_into(body, curve.iters[start : start + count], curve.values[start : start + count])
        start += count
    return curve


def decode_points(count: int, curve_body: bytes, details_body: bytes) -> Points:
    """One whole chunk."""
    curve = decode_curves([(count, curve_body)])
    timestamps, workers = _DETAILS.unpack_from(details_body)
    details = memoryview(details_body)[_DETAILS.size :]
    edges = (0, timestamps, timestamps + workers, len(details))
    return Points(*curve, *(integers.decode(details[a:b], count) for a, b in itertools.pairwise(edges)))
