"""Encodes chunks of up to `LARGEST` points of one series: the curve, and apart from it what curves do not need.

Values are float32 if that loses no bit, else float64. `integers` encodes the other columns. A sealed chunk has up to
`LARGEST_SEALED` points, and `pco` encodes its values and what `integers` cannot in few bytes. For example, two points
with iterations 0 and 1, values 0.5 and 0.25, sent by worker 3 at 1000 and 1010, and received at 1200:

    curve     4 bytes a value; iterations: first 0, step 1; values: 0.5, 0.25
    details   timestamps: first 1000, step 10; workers: first 3, step 0; received: first 1200, step 0
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from apiserver.events.model import Float64Array, Int64Array
from apiserver.events.queries import GREATEST, LEAST
from apiserver.stores.events.codec import integers, pco
from apiserver.stores.events.codec.checked import decoder, unwrap
from apiserver.stores.events.codec.integers import Progression
from apiserver.stores.events.codec.points import Curve, Points
from apiserver.stores.events.codec.reports import Reports

LARGEST = 4096
LARGEST_SEALED = 16384
#: How many points are held in memory at a time, however many there are.
POINTS_AT_A_TIME = 2**18

_CURVE = struct.Struct("<BI")  # bytes a value, and how they are encoded; bytes of iters
_PCODEC = 16
_DETAILS = struct.Struct("<II")  # bytes of timestamps, of workers
_WIDTHS: dict[int, npt.DTypeLike] = {4: np.dtype("<f4"), 8: np.dtype("<f8")}

#: How many points a chunk has, and its encoded curve.
Body = tuple[int, bytes]
#: How many points a chunk has, its encoded curve and its details.
WholeBody = tuple[int, bytes, bytes]
#: How many points a chunk has, and its encoded curve without the checksum.
_Content = tuple[int, memoryview]


def encode_curve(iters: Int64Array, values: Float64Array, *, sealed: bool = False, page: int = pco.PAGE) -> bytes:
    """The curve of a chunk as bytes."""
    encoded = integers.encode(iters, sealed=sealed, page=page)
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = values.astype("<f4")
    lossless = np.array_equal(narrow.astype("<f8").view("<i8"), values.view("<i8"))
    packed = narrow if lossless else np.ascontiguousarray(values)
    how = packed.itemsize | (_PCODEC if sealed else 0)
    numbers = pco.encode(packed, page) if sealed else packed.tobytes()
    return b"".join((_CURVE.pack(how, len(encoded)), encoded, numbers))


def encode_details(
    timestamps: Int64Array,
    workers: Int64Array,
    received: Int64Array,
    *,
    sealed: bool = False,
    page: int = pco.PAGE,
) -> bytes:
    """The details of a chunk as bytes."""
    columns = [integers.encode(column, sealed=sealed, page=page) for column in (timestamps, workers, received)]
    return b"".join((_DETAILS.pack(len(columns[0]), len(columns[1])), *columns))


@decoder
def decode_curves(bodies: Sequence[Body]) -> Curve:
    """The curves of adjacent chunks as one."""
    iters, values = Room().decode(bodies)
    return Curve(iters if isinstance(iters, np.ndarray) else iters.whole(), values)


class Room:
    """Memory for decoding adjacent chunks, used again for the next ones: allocating takes longer than decoding."""

    def __init__(self) -> None:
        self._iters = np.empty(0, np.int64)
        self._values = np.empty(0, np.float64)

    @decoder
    def decode(self, bodies: Sequence[Body]) -> tuple[Int64Array | Progression, Float64Array]:
        """Iterations and values of adjacent chunks, which the next call may overwrite."""
        length = sum(count for count, _ in bodies)
        if length > len(self._values):
            self._iters, self._values = np.empty(length, np.int64), np.empty(length, np.float64)
        values = self._values[:length]
        curves = [(count, unwrap(body)) for count, body in bodies]
        _decode_values(curves, values)
        return _progression(curves) or self._decoded_iters(curves, length), values

    def _decoded_iters(self, curves: Sequence[_Content], length: int) -> Int64Array:
        start = 0
        for count, body in curves:
            _, size = _CURVE.unpack_from(body)
            integers.decode_into(body[_CURVE.size : _CURVE.size + size], self._iters[start : start + count])
            start += count
        return self._iters[:length]


def _decode_values(curves: Sequence[_Content], out: Float64Array) -> None:
    start = 0
    for count, body in curves:
        _decode_some_values(body, out[start : start + count], 0)
        start += count


def _decode_some_values(curve: memoryview, out: Float64Array, start: int) -> None:
    """Fill `out` with the values of a curve from `start` on."""
    how, size = _CURVE.unpack_from(curve)
    encoded = curve[_CURVE.size + size :]
    if not how & _PCODEC:
        out[:] = np.frombuffer(encoded, _WIDTHS[how])[start : start + len(out)]
    elif how == _PCODEC | out.itemsize:
        pco.decode_into(encoded, out, start)
    else:
        narrow = np.empty(len(out), _WIDTHS[how & ~_PCODEC])
        pco.decode_into(encoded, narrow, start)
        out[:] = narrow


def _progression(bodies: Sequence[_Content]) -> Progression | None:
    """The iterations of adjacent chunks if all their steps are equal, else None."""
    whole: Progression | None = None
    for count, body in bodies:
        part = integers.progression(body, count, _CURVE.size)
        if part is None or not (whole is None or part.follows(whole)):
            return None
        whole = Progression((whole or part).first, part.step, count + (whole.length if whole else 0))
    return whole


@decoder
def decode_points(count: int, curve_body: bytes, details_body: bytes, low: int = LEAST, high: int = GREATEST) -> Points:
    """The points of a chunk at low ≤ iter ≤ high. Of a sealed chunk, little else is decoded."""
    content = unwrap(details_body)
    part, curve = _decode_part(count, curve_body, low, high)
    timestamps, workers = _DETAILS.unpack_from(content)
    details = content[_DETAILS.size :]
    edges = (0, timestamps, timestamps + workers, len(details))
    columns = (integers.decode_part(details[a:b], count, part) for a, b in itertools.pairwise(edges))
    return Points(*curve, *columns)


@decoder
def decode_curve(count: int, body: bytes, low: int, high: int) -> Curve:
    """The curve of a chunk at low ≤ iter ≤ high. Of a sealed chunk, little else is decoded."""
    _, curve = _decode_part(count, body, low, high)
    return curve


def _decode_part(count: int, body: bytes, low: int, high: int) -> tuple[slice, Curve]:
    """Which points of a chunk lie at low ≤ iter ≤ high, and their curve."""
    content = unwrap(body)
    _, size = _CURVE.unpack_from(content)
    iters = integers.decode(content[_CURVE.size : _CURVE.size + size], count)
    start, stop = int(np.searchsorted(iters, low, "left")), int(np.searchsorted(iters, high, "right"))
    values = np.empty(stop - start, np.float64)
    if start < stop:
        _decode_some_values(content, values, start)
    return slice(start, stop), Curve(iters[start:stop], values)


@decoder
def only_worker(details_body: bytes) -> int | None:
    """The number of the worker that reported all points of a chunk, or None if there are several workers."""
    content = unwrap(details_body)
    timestamps, _ = _DETAILS.unpack_from(content)
    return integers.constant(content, _DETAILS.size + timestamps)


@decoder
def decode_times(count: int, details_body: bytes) -> tuple[Int64Array, Int64Array]:
    """The timestamps and workers of a chunk."""
    times, workers = np.empty(count, np.int64), np.empty(count, np.int64)
    _decode_times(details_body, times, workers)
    return times, workers


@decoder
def decode_reports(bodies: Sequence[WholeBody]) -> Reports:
    """The reports in the chunks, one chunk after another; there must be at least one."""
    length = sum(count for count, _, _ in bodies)
    reports = Reports(np.empty(length, np.int64), np.empty(length, np.int64), np.empty(length, np.float64))
    _decode_values([(count, unwrap(curve)) for count, curve, _ in bodies], reports.values)
    start = 0
    for count, _, details in bodies:
        _decode_times(details, reports.timestamps[start : start + count], reports.workers[start : start + count])
        start += count
    return reports


def _decode_times(details_body: bytes, timestamps: Int64Array, workers: Int64Array) -> None:
    content = unwrap(details_body)
    lengths = _DETAILS.unpack_from(content)
    start = _DETAILS.size
    for length, column in zip(lengths, (timestamps, workers), strict=True):
        integers.decode_into(content[start : start + length], column)
        start += length
