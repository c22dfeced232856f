"""Blocks and buckets: what is kept of about 64 neighbouring points, so that long histograms need not look at points.

A block holds the points of one chunk with the same `iter >> shift`; its shift belongs to the chunk. Blocks of a chunk
are ascending and none is empty. A bucket is made of whole blocks when its interval is a multiple of 2^shift; else of
points. Blocks and points are both `pieces` here: rows that sum up one or more points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from apiserver.events.model import Buckets, Float64Array, Int64Array
from apiserver.stores.events.embedded.points import Curve, concat
from apiserver.stores.events.embedded.stats import LEAST

POINTS_A_BLOCK = 64
#: An interval is answered from blocks when it spans at least this many: rounding it up then adds 10 % at most.
BLOCKS_A_BUCKET = 10
_LARGEST_SHIFT = 40
_POINTS_A_SEARCH = 8
#: Curves of up to so many points are bucketed many at a time: what is done for each takes longer than its points.
SHORT = 4096

BLOCK = np.dtype(
    [
        ("start", "<i8"),  # least iteration the block could hold
        ("sum", "<f8"),
        ("min", "<f8"),
        ("max", "<f8"),
        ("first", "<f8"),
        ("last", "<f8"),
        ("count", "<u4"),
        ("finite", "<u4"),
    ]
)
BlockArray = npt.NDArray[Any]
Starts = npt.NDArray[np.intp]


@dataclass(slots=True)
class Pieces:
    """Rows that stand for one or more points each, as columns, ascending by `x`; min is +inf where none is finite."""

    x: Int64Array
    count: Int64Array
    finite: Int64Array
    sum: Float64Array
    min: Float64Array
    max: Float64Array
    first: Float64Array
    last: Float64Array


def shift_of(first: int, last: int, count: int) -> int:
    """The shift with which a chunk's blocks hold about POINTS_A_BLOCK points."""
    span = last - first + 1
    return min(max(0, (span * POINTS_A_BLOCK // count).bit_length() - 1), _LARGEST_SHIFT)


def blocks_of(iters: Int64Array, values: Float64Array, starts: Starts, shifts: list[int]) -> list[BlockArray]:
    """The blocks of each chunk; chunk n begins at starts[n] and has shifts[n]."""
    lengths = np.diff(np.append(starts, len(iters)))
    shift = np.repeat(np.array(shifts, np.int64), lengths)
    block = iters >> shift
    new = np.empty(len(iters), np.bool_)
    new[0] = True
    np.not_equal(block[1:], block[:-1], out=new[1:])
    new[starts] = True
    begins = np.flatnonzero(new)
    pieces = _sum_up(pieces_of(Curve(iters, values)), begins)
    rows = np.empty(len(begins), BLOCK)
    rows["start"] = block[begins] << shift[begins]
    for name in ("sum", "min", "max", "first", "last", "count", "finite"):
        rows[name] = getattr(pieces, name)
    return np.split(rows, np.searchsorted(begins, starts[1:]))


def pieces_of(curve: Curve) -> Pieces:
    """Each point for itself."""
    values = curve.values
    finite = np.isfinite(values)
    ones = np.broadcast_to(np.int64(1), len(values))
    if finite.all():
        return Pieces(curve.iters, ones, ones, values, values, values, values, values)
    return Pieces(
        curve.iters,
        ones,
        finite.astype(np.int64),
        np.where(finite, values, 0.0),
        np.where(finite, values, np.inf),
        np.where(finite, values, -np.inf),
        values,
        values,
    )


def pieces_of_blocks(rows: BlockArray) -> Pieces:
    """Each block for itself."""
    columns = (np.ascontiguousarray(rows[name]) for name in ("sum", "min", "max", "first", "last"))
    return Pieces(rows["start"].copy(), rows["count"].astype(np.int64), rows["finite"].astype(np.int64), *columns)


def joined(parts: Sequence[Pieces]) -> Pieces:
    """The parts one after another; there must be at least one."""
    if len(parts) == 1:
        return parts[0]
    return Pieces(*(np.concatenate([getattr(part, name) for part in parts]) for name in Pieces.__slots__))


@dataclass(slots=True)
class Source:
    """What the buckets of one series are made of: ascending, and no piece reaches over a bucket's end."""

    metric: str
    variant: str
    content: Curve | Pieces
    interval: int


def bucketed(sources: Sequence[Source]) -> list[Buckets]:
    """The buckets of each source, in their order; short curves are looked at all at once."""
    found: dict[int, Buckets] = {}
    short: list[tuple[int, Source, Curve]] = []
    for n, one in enumerate(sources):
        if isinstance(one.content, Pieces):
            found[n] = _alone(one, one.content)
        elif len(one.content.iters) > SHORT:
            found[n] = _alone(one, pieces_of(one.content))
        else:
            short.append((n, one, one.content))
    if short:
        numbers, ones, curves = zip(*short, strict=True)
        found.update(zip(numbers, _together(ones, curves), strict=True))
    return [found[n] for n in range(len(sources))]


def _alone(source: Source, pieces: Pieces) -> Buckets:
    starts = _bucket_starts(pieces.x, source.interval)
    columns = _columns(pieces, starts, _bucket_x(pieces.x[starts], source.interval))
    return Buckets(source.metric, source.variant, *columns)


def _together(sources: Sequence[Source], curves: Sequence[Curve]) -> list[Buckets]:
    lengths = [len(curve.iters) for curve in curves]
    series = np.repeat(np.arange(len(curves)), lengths)
    interval = np.repeat(np.array([one.interval for one in sources], np.int64), lengths)
    curve = concat(curves)
    bucket = curve.iters // interval
    new = np.append(True, (bucket[1:] != bucket[:-1]) | (series[1:] != series[:-1]))[: len(bucket)]
    starts = np.flatnonzero(new)
    columns = _columns(pieces_of(curve), starts, _bucket_x(curve.iters[starts], interval[starts]))
    ends = np.searchsorted(series[starts], np.arange(len(curves) + 1)).tolist()
    return [
        Buckets(one.metric, one.variant, *(column[start:stop] for column in columns))
        for one, start, stop in zip(sources, ends, ends[1:], strict=False)
    ]


def _columns(pieces: Pieces, starts: Starts, x: Int64Array) -> tuple[npt.NDArray[Any], ...]:
    """The columns of Buckets; bucket n begins at starts[n] and at x[n]."""
    summed = _sum_up(pieces, starts)
    some = summed.finite > 0
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.divide(summed.sum, summed.finite, out=np.full(len(starts), np.nan), where=some)
    least, greatest = np.where(some, summed.min, np.nan), np.where(some, summed.max, np.nan)
    return x, summed.count, mean, least, greatest, summed.first, summed.last


def _bucket_x(x: Int64Array, interval: int | Int64Array) -> Int64Array:
    """The start of the bucket of each x, or −2⁶³ if it lies before that, where it would wrap around."""
    start = x // interval * interval
    return np.where(start > x, LEAST, start)


def _bucket_starts(x: Int64Array, interval: int) -> Starts:
    """Where in ascending `x` each bucket that is not empty begins."""
    if not len(x):
        return np.empty(0, np.intp)
    first, last = int(x[0]) // interval, int(x[-1]) // interval
    if last - first < len(x) // _POINTS_A_SEARCH:  # looking for the bounds of buckets is quicker than dividing all x
        bounds = np.arange(first + 1, last + 1) * interval
        return np.unique(np.concatenate([[0], np.searchsorted(x, bounds)]))
    bucket = x if interval == 1 else x // interval
    return np.flatnonzero(np.append(True, bucket[1:] != bucket[:-1]))


def _sum_up(pieces: Pieces, starts: Starts) -> Pieces:
    """One piece for each group of pieces; group n begins at starts[n]."""
    if len(starts) == len(pieces.x):
        return pieces
    stops = np.append(starts[1:], len(pieces.x))
    lengths_known = pieces.count is pieces.finite  # then every piece is one finite point
    with np.errstate(over="ignore", invalid="ignore"):
        count = stops - starts if lengths_known else np.add.reduceat(pieces.count, starts)
        return Pieces(
            x=pieces.x[starts],
            count=count,
            finite=count if lengths_known else np.add.reduceat(pieces.finite, starts),
            sum=np.add.reduceat(pieces.sum, starts),
            min=np.minimum.reduceat(pieces.min, starts),
            max=np.maximum.reduceat(pieces.max, starts),
            first=pieces.first[starts],
            last=pieces.last[stops - 1],
        )
