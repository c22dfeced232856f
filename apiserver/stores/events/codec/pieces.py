"""Sums of neighbouring points. A block sums up some points of a chunk, so that long histograms need not read points.

Blocks have up to 64 points each on average; those of sealed chunks up to 256, as their points take few bytes.

A block has the points of a chunk with the same `iter >> shift`. The shift is the same for all blocks of a chunk. Blocks
ascend, and none is empty. A bucket is made of whole blocks if its interval is a multiple of 2^shift, else of points.
Blocks and points are both "pieces" here: rows that sum up one or more points.

For example, a chunk has 4,096 points at iterations 0, 10, 20, …, 40,950. The shift is 9: the blocks span iterations
0–511, 512–1023 and so on, and have 51 or 52 points each. The next shift, 10, would give over 64 points.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from apiserver.events import aggregates
from apiserver.events.aggregates import COLUMNS, Rows, Sums
from apiserver.events.model import Float64Array, Int64Array
from apiserver.stores.events.codec import compression
from apiserver.stores.events.codec.extremes import Extremes
from apiserver.stores.events.codec.integers import Progression
from apiserver.stores.events.codec.points import Curve

POINTS_A_BLOCK = 64
POINTS_A_SEALED_BLOCK = 256
_LARGEST_SHIFT = 40

#: A block on disk. `start` is the least iteration that the block could have.
BLOCK = np.dtype([("start", "<i8"), *((name, column.stored) for name, column in COLUMNS.items())])
_VALUES = ("min", "max", "first", "last")
#: A block in fewer bytes, where float32 loses nothing of single values, as in most curves of losses.
_NARROW = np.dtype([(name, "<f4" if name in _VALUES else BLOCK[name]) for name in BLOCK.names or ()])
_BYTES = 8
BlockArray = npt.NDArray[Any]
ColumnNames = Sequence[str]
"""The names of columns of `COLUMNS`."""


class Pieces(NamedTuple):
    """Rows that sum up one or more points each, ascending by `x`."""

    x: Int64Array
    sums: Sums


def shift_of(first: int, last: int, count: int, points: int) -> int:
    """The largest shift with which a chunk's blocks have up to so many `points` on average."""
    span = last - first + 1
    return min(max(0, (span * points // count).bit_length() - 1), _LARGEST_SHIFT)


def blocks_of(iters: Int64Array, values: Float64Array, starts: Rows, shifts: list[int]) -> list[BlockArray]:
    """The blocks of each chunk; chunk n begins at starts[n] and has shifts[n]."""
    lengths = np.diff(np.append(starts, len(iters)))
    shift = np.repeat(np.array(shifts, np.int64), lengths)
    block = iters >> shift
    new = np.empty(len(iters), np.bool_)
    new[0] = True
    np.not_equal(block[1:], block[:-1], out=new[1:])
    new[starts] = True
    begins = np.flatnonzero(new)
    rows = np.empty(len(begins), BLOCK)
    rows["start"] = block[begins] << shift[begins]
    for name, column in sum_up_points(iters, values, begins, tuple(COLUMNS)).sums.items():
        rows[name] = column
    return np.split(rows, np.searchsorted(begins, starts[1:]))


def encode_blocks(rows: BlockArray) -> bytes:
    """The blocks of a sealed chunk as bytes: narrow ones compressed, others as they are, in a multiple of 8 bytes.

    So that they can be told apart, one or two bytes precede narrow blocks, which say how many they are.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = rows.astype(_NARROW)
    if all(np.array_equal(narrow[name].astype("<f8").view("<i8"), rows[name].view("<i8")) for name in _VALUES):
        frame = compression.compress(narrow.tobytes())
        before = 1 if (len(frame) + 1) % _BYTES else 2
        return bytes([before]) * before + frame
    return rows.tobytes()


def decode_blocks(encoded: Sequence[memoryview], columns: ColumnNames) -> Pieces:
    """Each block of adjacent chunks as a piece. There must be at least one chunk.

    Neighbours whose blocks are stored alike are decoded together, as a call of NumPy's takes longer than some blocks.
    """
    parts = []
    for are_narrow, bodies in groupby(encoded, _are_narrow):
        if are_narrow:
            rows = np.frombuffer(b"".join([compression.decompress(body[body[0] :]) for body in bodies]), _NARROW)
        else:
            rows = np.frombuffer(b"".join(bodies), BLOCK)
        sums = {name: rows[name].astype(COLUMNS[name].type) for name in columns}
        parts.append(Pieces(rows["start"].astype(np.int64), sums))
    return concatenated(parts)


def count_blocks(encoded: memoryview) -> int:
    """How many blocks a chunk has."""
    if _are_narrow(encoded):
        return compression.size_of(encoded[encoded[0] :]) // _NARROW.itemsize
    return len(encoded) // BLOCK.itemsize


def _are_narrow(encoded: memoryview) -> bool:
    return len(encoded) % _BYTES != 0


def pieces_of(curve: Curve, columns: ColumnNames) -> Pieces:
    """Each point as a piece."""
    return Pieces(curve.iters, aggregates.of_points(curve.values, columns))


def concatenated(parts: Sequence[Pieces]) -> Pieces:
    """The parts one after another. There must be at least one."""
    if len(parts) == 1:
        return parts[0]
    sums = {name: np.concatenate([part.sums[name] for part in parts]) for name in parts[0].sums}
    return Pieces(np.concatenate([part.x for part in parts]), sums)


def sum_up(pieces: Pieces, starts: Rows) -> Pieces:
    """One piece for each group of pieces. Group n begins at starts[n]."""
    if len(starts) == len(pieces.x):
        return pieces
    return Pieces(pieces.x[starts], aggregates.joined(pieces.sums, starts))


def sum_up_points(
    iters: Int64Array | Progression,
    values: Float64Array,
    starts: Rows,
    columns: ColumnNames,
    extremes: Extremes | None = None,
) -> Pieces:
    """One piece for each group of points, with none of the given arrays in it.

    Usually the total of each group is finite. Then all values are, and are not tested one by one. If `extremes` takes
    them, the pieces have the extremes of no values.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.add.reduceat(values, starts)
        if not np.isfinite(total).all():
            return sum_up(pieces_of(Curve(iters[np.arange(len(values))], values.copy()), columns), starts)
        lasts = aggregates.lasts_of(starts, len(values))
        count = lasts - starts + 1
        sums: Sums = {"sum": total, "count": count, "finite": count}
        if extremes is not None and isinstance(iters, Progression) and extremes.take(iters, values):
            sums |= {"min": np.full(len(starts), np.inf), "max": np.full(len(starts), -np.inf)}
        return Pieces(
            iters[starts],
            {name: sums[name] if name in sums else COLUMNS[name].summed(values, starts, lasts) for name in columns},
        )
