"""Sums of neighbouring points. A block sums up about 64 points of a chunk, so long histograms need not read points.

A block has the points of a chunk with the same `iter >> shift`. The shift is the same for all blocks of a chunk. Blocks
ascend, and none is empty. A bucket is made of whole blocks if its interval is a multiple of 2^shift, else of points.
Blocks and points are both "pieces" here: rows that sum up one or more points.

For example, a chunk has 4,096 points at iterations 0, 10, 20, …, 40,950. The shift is 9: the blocks span iterations
0–511, 512–1023 and so on, and have 51 or 52 points each. The next shift, 10, would give over 64 points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from apiserver.events.model import Float64Array, Int64Array
from apiserver.stores.events.embedded.integers import Progression
from apiserver.stores.events.embedded.points import Curve

POINTS_A_BLOCK = 64
_LARGEST_SHIFT = 40

BLOCK = np.dtype(
    [
        ("start", "<i8"),  # the least iteration that the block could have
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


class Pieces(NamedTuple):
    """Rows that sum up one or more points each, as columns, ascending by `x`; min is +inf if no value is finite.

    If no envelope is asked for, the last four columns are `NO_COLUMN`.
    """

    x: Int64Array
    points: Int64Array
    finite: Int64Array
    sum: Float64Array
    min: Float64Array
    max: Float64Array
    first: Float64Array
    last: Float64Array


NO_COLUMN: Float64Array = np.empty(0, np.float64)
_NO_ENVELOPE = (NO_COLUMN,) * 4


def shift_of(first: int, last: int, count: int) -> int:
    """The largest shift with which a chunk's blocks have up to POINTS_A_BLOCK points on average."""
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
    pieces = sum_up_points(iters, values, begins, envelope=True)
    rows = np.empty(len(begins), BLOCK)
    rows["start"] = block[begins] << shift[begins]
    rows["count"] = pieces.points
    for name in ("sum", "min", "max", "first", "last", "finite"):
        rows[name] = getattr(pieces, name)
    return np.split(rows, np.searchsorted(begins, starts[1:]))


def pieces_of(curve: Curve, *, envelope: bool) -> Pieces:
    """A piece for each point."""
    values = curve.values
    finite = np.isfinite(values)
    ones = np.ones(len(values), np.int64)
    if finite.all():
        return Pieces(curve.iters, ones, ones, values, *((values,) * 4 if envelope else _NO_ENVELOPE))
    sums = np.where(finite, values, 0.0)
    ends = np.where(finite, values, np.inf), np.where(finite, values, -np.inf), values, values
    return Pieces(curve.iters, ones, finite.astype(np.int64), sums, *(ends if envelope else _NO_ENVELOPE))


def pieces_of_blocks(rows: BlockArray, *, envelope: bool) -> Pieces:
    """A piece for each block."""
    x, points, finite = (rows[name].astype(np.int64) for name in ("start", "count", "finite"))
    names = ("sum", "min", "max", "first", "last") if envelope else ("sum",)
    sums, *ends = (np.ascontiguousarray(rows[name]) for name in names)
    return Pieces(x, points, finite, sums, *(ends or _NO_ENVELOPE))


def joined(parts: Sequence[Pieces]) -> Pieces:
    """The parts one after another; there must be at least one."""
    return parts[0] if len(parts) == 1 else Pieces._make(map(np.concatenate, zip(*parts, strict=True)))


def sum_up(pieces: Pieces, starts: Starts) -> Pieces:
    """One piece for each group of pieces; group n begins at starts[n]."""
    if len(starts) == len(pieces.x):
        return pieces
    with np.errstate(over="ignore", invalid="ignore"):
        x = pieces.x[starts]
        points, finite = np.add.reduceat(pieces.points, starts), np.add.reduceat(pieces.finite, starts)
        sums = np.add.reduceat(pieces.sum, starts)
        if not len(pieces.min):
            return Pieces(x, points, finite, sums, *_NO_ENVELOPE)
        least, greatest = np.minimum.reduceat(pieces.min, starts), np.maximum.reduceat(pieces.max, starts)
        first, last = pieces.first[starts], pieces.last[_lasts(starts, len(pieces.x))]
        return Pieces(x, points, finite, sums, least, greatest, first, last)


def sum_up_points(iters: Int64Array | Progression, values: Float64Array, starts: Starts, *, envelope: bool) -> Pieces:
    """One piece for each group of points; group n begins at starts[n]. No column is a view of `iters` or `values`."""
    with np.errstate(over="ignore", invalid="ignore"):
        sums = np.add.reduceat(values, starts)
    if not np.isfinite(sums).all():
        return sum_up(pieces_of(Curve(iters[np.arange(len(values))], values.copy()), envelope=envelope), starts)
    lasts = _lasts(starts, len(values))
    count = lasts - starts + 1
    if not envelope:
        return Pieces(iters[starts], count, count, sums, *_NO_ENVELOPE)
    least, greatest = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    return Pieces(iters[starts], count, count, sums, least, greatest, values[starts], values[lasts])


def _lasts(starts: Starts, length: int) -> Starts:
    lasts = np.empty_like(starts)
    np.subtract(starts[1:], 1, out=lasts[:-1])
    lasts[-1:] = length - 1
    return lasts
