"""Histograms of scalars: chooses how wide the buckets of each series are, and whether blocks or points make them.

Reading blocks takes much less time than reading points. So buckets become up to `MOST_WIDENING` wider if whole blocks
fit into them then. For example, with blocks of 512 iterations:

    interval 1,000   becomes 1,024, which is 2.4 % wider: a bucket is two blocks
    interval 700     stays, as 1,024 would be 46 % wider: all points are read, some chunks at a time
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from apiserver import answers
from apiserver.events.aggregates import Buckets, columns_for
from apiserver.events.model import SINGLE_VALUE_ITERATION, BucketAxis
from apiserver.events.queries import GREATEST, LEAST, BucketQuery, Width
from apiserver.events.smoothing import Smoother
from apiserver.stores.events.base import since_first
from apiserver.stores.events.embedded.bucketing import SHORT, Part, Source, bucket_starts, bucketed
from apiserver.stores.events.embedded.checked import unwrap
from apiserver.stores.events.embedded.chunks import Room, decode_curves
from apiserver.stores.events.embedded.pieces import (
    BLOCK,
    ColumnNames,
    Pieces,
    pieces_of_blocks,
    sum_up,
    sum_up_points,
)
from apiserver.stores.events.embedded.points import Columns, Curve, take, within
from apiserver.stores.events.embedded.series import Content, Series, merged_stats
from apiserver.stores.events.embedded.unsettled import in_parts
from apiserver.stores.events.embedded.walks import SeriesWalk

#: How much wider buckets may become, as a part of the width asked for.
MOST_WIDENING = 0.1
#: How many chunks of a series are summed up at once: as many as fit into a processor's cache.
CHUNKS_OF_POINTS = 32
CHUNKS_OF_BLOCKS = 64
CHUNKS_TO_SMOOTH = 8

Made = TypeVar("Made", Curve, Pieces)


class _Rooms(threading.local):
    def __init__(self) -> None:
        self.room = Room()


_rooms = _Rooms()


def all_buckets(series: Sequence[Series], wanted: BucketQuery) -> list[Buckets]:
    """The buckets of each series that has a curve, not only a single value, sorted by name."""
    found: list[Buckets] = []
    for more in some_buckets(series, wanted):
        answers.will_read(wanted.size(len(more), sum([len(buckets.x) for buckets in more])))
        found += more
    return sorted(found, key=lambda buckets: (buckets.metric, buckets.variant))


def some_buckets(series: Sequence[Series], wanted: BucketQuery) -> Iterator[list[Buckets]]:
    """The same, in any order, some series at a time."""
    for which in in_parts(series):
        part = [series[n] for n in which.tolist()]
        sources = (_by_iteration if wanted.axis is BucketAxis.ITER else _by_time)(part, wanted)
        yield bucketed(sources, wanted.aggregates)


# --- over times ------------------------------------------------------------------------------------


def _by_time(series: Sequence[Series], wanted: BucketQuery) -> Iterator[Source]:
    for one in series:
        curve = curve_over(one, wanted.axis)
        if not len(curve.iters):
            continue
        interval = wanted.width(len(curve.iters), int(curve.iters[0]), int(curve.iters[-1]))
        if wanted.smoothing is not None:
            curve = Curve(*wanted.smoothing.whole(curve.iters, curve.values))
        yield Source(*one.name, interval, [within(curve, wanted.range.least, wanted.range.greatest)])


def curve_over(series: Series, axis: BucketAxis) -> Curve:
    """The x and the values of a whole series, ascending by x, without its single value."""
    if axis is BucketAxis.ITER:
        return _points(series, LEAST, GREATEST)
    points = _without_single_value(series.points())
    curve = Curve(points.timestamps, points.values)
    if bool((curve.iters[1:] < curve.iters[:-1]).any()):
        curve = take(curve, np.argsort(curve.iters, kind="stable"))
    return Curve(since_first(curve.iters), curve.values) if axis is BucketAxis.DURATION else curve


# --- over iterations: how wide ---------------------------------------------------------------------


class _Extent(NamedTuple):
    """Of a series: the least and the greatest number of points it may have, its first and its last iteration."""

    fewest: int
    most: int
    first: int
    last: int


def _by_iteration(series: Sequence[Series], wanted: BucketQuery) -> Iterator[Source]:
    for one, extent in zip(series, _extents(series), strict=True):
        if extent.first == extent.last == SINGLE_VALUE_ITERATION:
            continue
        interval = _interval(one, extent, wanted.width)
        if wanted.smoothing is None:
            yield Source(*one.name, *_parts(one, interval, wanted))
        else:
            smoother = wanted.smoothing.begin(*_ends(one, extent))
            yield Source(*one.name, interval, list(_smoothed_parts(one, smoother, interval, wanted)))


def _extents(series: Sequence[Series]) -> Iterator[_Extent]:
    rows = merged_stats(one.merged for one in series)
    columns = (rows[name].tolist() for name in ("count", "min_iter", "max_iter"))
    for one, count, first, last in zip(series, *columns, strict=True):
        if not one.recent:
            yield _Extent(count, count, first, last)
            continue
        iters = one.hot.iters
        most = count + len(iters)
        fewest = most if iters[0] > last else max(count, len(iters))
        yield _Extent(fewest, most, min(first, int(iters[0])), max(last, int(iters[-1])))


def _interval(series: Series, extent: _Extent, width: Width) -> int:
    fewest, most, _, _ = extent
    first, last = _ends(series, extent)
    singles = int(_has_single_value(series, extent))
    interval = width(most - singles, first, last)
    if fewest < most and width(fewest - singles, first, last) != interval:
        interval = width(series.count() - singles, first, last)
    return interval


def _ends(series: Series, extent: _Extent) -> tuple[int, int]:
    """The first and the last iteration of the curve, which has no single value."""
    first, last = extent.first, extent.last
    if first == SINGLE_VALUE_ITERATION:
        first = _next_iteration(series, SINGLE_VALUE_ITERATION + 1, descending=False)
    elif last == SINGLE_VALUE_ITERATION:
        last = _next_iteration(series, SINGLE_VALUE_ITERATION - 1, descending=True)
    return first, last


def _has_single_value(series: Series, extent: _Extent) -> bool:
    single = SINGLE_VALUE_ITERATION
    if single in (extent.first, extent.last):
        return True
    return extent.first < single < extent.last and bool(len(series.curve(single, single).iters))


def _next_iteration(series: Series, start: int, *, descending: bool) -> int:
    walk = SeriesWalk(series, start, descending=descending)
    walk.fill(1)
    return int(walk.points().iters[0])


# --- over iterations: blocks or points -------------------------------------------------------------


def _parts(series: Series, interval: int, wanted: BucketQuery) -> tuple[int, list[Part]]:
    """The interval, perhaps widened, and the pieces and points to put into buckets."""
    low, high = wanted.range.least, wanted.range.greatest
    chunk_end = series.merged.chunk_end
    if interval == 1 or chunk_end is None or chunk_end < low:
        return interval, [_points(series, low, high)]
    widened = {-(-interval >> shift) << shift: shift for shift in sorted(series.shifts(low, high))}
    usable = [wider for wider in widened if wider - interval <= interval * MOST_WIDENING and wider <= GREATEST]
    if usable:
        interval = max(usable)
        contents, run, read = series.blocks(low, high, widened[interval]), CHUNKS_OF_BLOCKS, _sum_up_blocks
    else:
        contents, run, read = series.curves(low, high), CHUNKS_OF_POINTS, _sum_up_points
    sum_up = partial(read, interval=interval, columns=columns_for(wanted.aggregates))
    parts: list[Part] = []
    while chunks := contents.fetchmany(run):
        parts += _of_chunks(series, chunks, low, high, sum_up)
        low = _end(chunks) + 1
    if low <= high:
        parts.append(_points(series, low, high))
    return interval, parts


def _of_chunks(
    series: Series, chunks: Sequence[Content], low: int, high: int, made_of: Callable[[Sequence[Content]], Made]
) -> list[Made | Curve]:
    """The points from `low` to the end of adjacent chunks, but not beyond `high`; `made_of` chunks if that is possible.

    It is possible if the bodies of all chunks were read, all lie wholly inside, and no hot point is in or before them.
    """
    first, last = chunks[0][0], _end(chunks)
    inside = low <= first and last <= high and not first <= SINGLE_VALUE_ITERATION <= last
    if inside and all(body is not None for _, _, _, body in chunks) and not series.has_hot(low, last):
        return [made_of(chunks)]
    if len(chunks) == 1:
        return [_points(series, low, min(last, high))]
    half = len(chunks) // 2
    parts = _of_chunks(series, chunks[:half], low, high, made_of)
    return parts + _of_chunks(series, chunks[half:], _end(chunks[:half]) + 1, high, made_of)


def _end(chunks: Sequence[Content]) -> int:
    last: int = chunks[-1][1]
    return last


def _sum_up_blocks(chunks: Sequence[Content], interval: int, columns: ColumnNames) -> Pieces:
    rows = np.frombuffer(b"".join([unwrap(body) for _, _, _, body in chunks]), BLOCK)
    blocks = pieces_of_blocks(rows, columns)
    if len(rows) <= SHORT // 2:  # then it is faster to sum up several series at once
        return blocks
    return sum_up(blocks, bucket_starts(blocks.x, interval))


def _sum_up_points(chunks: Sequence[Content], interval: int, columns: ColumnNames) -> Pieces:
    iters, values = _rooms.room.decode([(length, body) for _, _, length, body in chunks])
    return sum_up_points(iters, values, bucket_starts(iters, interval), columns)


# --- over iterations: smoothed ---------------------------------------------------------------------


def _smoothed_parts(series: Series, smoother: Smoother, interval: int, wanted: BucketQuery) -> Iterator[Part]:
    """The smoothed points in the range that is asked for, summed up unless each one is a bucket."""
    columns = columns_for(wanted.aggregates)
    for curve in _smoothed(series, smoother):
        inside = within(curve, wanted.range.least, wanted.range.greatest) if len(curve.iters) else curve
        if interval == 1:
            yield inside
        elif len(inside.iters):
            yield sum_up_points(*inside, bucket_starts(inside.iters, interval), columns)


def _smoothed(series: Series, smoother: Smoother) -> Iterator[Curve]:
    """The whole series, smoothed some chunks at a time."""
    contents, low = series.curves(LEAST, GREATEST), LEAST
    while chunks := contents.fetchmany(CHUNKS_TO_SMOOTH):
        for curve in _of_chunks(series, chunks, low, GREATEST, _decoded):
            yield Curve(*smoother.feed(*curve))
        low = _end(chunks) + 1
    if low <= GREATEST:
        yield Curve(*smoother.feed(*_points(series, low, GREATEST)))
    yield Curve(*smoother.rest())


def _decoded(chunks: Sequence[Content]) -> Curve:
    return decode_curves([(length, body) for _, _, length, body in chunks])


def _points(series: Series, low: int, high: int) -> Curve:
    return _without_single_value(series.curve(low, high))


def _without_single_value(points: Columns) -> Columns:
    iters = points.iters
    if not len(iters) or iters[0] > SINGLE_VALUE_ITERATION:
        return points
    at = int(np.searchsorted(iters, SINGLE_VALUE_ITERATION))
    if at < len(iters) and iters[at] == SINGLE_VALUE_ITERATION:
        return take(points, np.arange(len(iters)) != at)
    return points
