"""Histograms of scalars: chooses how wide the buckets of each series are, and whether blocks or points make them.

Reading blocks takes much less time than reading points. So buckets become a little wider (`most_widening`) if
whole blocks fit into them then. For example, with blocks of 512 iterations:

    interval 1,000   becomes 1,024, which is 2.4 % wider: a bucket is two blocks
    interval 700     stays, as 1,024 would be 46 % wider: all points are read, some chunks at a time

If the query says that buckets may be finer, 700 becomes 512: there are more buckets, and no points are read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeVar

from apiserver.common import answers
from apiserver.events.aggregates import Buckets, columns_for
from apiserver.events.model import SINGLE_VALUE_ITERATION, BucketAxis, Float64Array, Int64Array
from apiserver.events.queries import GREATEST, LEAST, BucketQuery, Width
from apiserver.events.smoothing import Smoothing
from apiserver.stores.events.codec.bucketing import (
    InBuckets,
    Part,
    Source,
    bucket_starts,
    bucketed,
    fitting,
    of_blocks,
    of_curves,
)
from apiserver.stores.events.codec.checked import decoder, unwrap
from apiserver.stores.events.codec.chunks import Room
from apiserver.stores.events.codec.extremes import Extremes
from apiserver.stores.events.codec.integers import Progression
from apiserver.stores.events.codec.pieces import ColumnNames, Pieces, decode_blocks, shift_of, sum_up, sum_up_points
from apiserver.stores.events.codec.points import NO_CURVE, Curve, curve_over_time, within, without_single_value
from apiserver.stores.events.embedded import decoded
from apiserver.stores.events.embedded.decoded import Blocks
from apiserver.stores.events.embedded.kept_curves import NOTHING_KEPT, KeptCurves, Key
from apiserver.stores.events.embedded.names import state
from apiserver.stores.events.embedded.series import Content, Series, chunk_shifts, merged_stats
from apiserver.stores.events.embedded.smoothed import Known, Stretch
from apiserver.stores.events.embedded.unsettled import in_parts
from apiserver.stores.events.embedded.walks import SeriesWalk

Made = TypeVar("Made", Curve, Pieces)


class _Rooms(threading.local):
    def __init__(self) -> None:
        self.room = Room()


_rooms = _Rooms()


def all_buckets(views: Sequence[Sequence[Series]], query: BucketQuery, curves: KeptCurves) -> list[list[Buckets]]:
    """For each owner's series, the buckets of those that have a curve, not only a single value, in their order."""
    series = [one for view in views for one in view]
    buckets: dict[int, Buckets] = {}
    for in_buckets in some_buckets(series, query, curves):
        answers.will_read(query.size(len(in_buckets), sum([len(one.x) for one in in_buckets])))
        buckets.update({number: Buckets(*series[number].name, x, values) for number, x, values in in_buckets})
    numbers = iter(range(len(series)))
    return [[buckets[number] for number in islice(numbers, len(view)) if number in buckets] for view in views]


def some_buckets(
    series: Sequence[Series],
    query: BucketQuery,
    curves: KeptCurves = NOTHING_KEPT,
    extremes: Extremes | None = None,
) -> Iterator[list[InBuckets]]:
    """The same, in any order, some series at a time. Points that `extremes` takes have none in their buckets."""
    for which in in_parts(series):
        part = [(n, series[n]) for n in which.tolist()]
        if query.axis is BucketAxis.ITER:
            sources = _by_iteration(part, query, curves, extremes)
        else:
            sources = of_curves(((n, curve_over(one, query.axis, query.smoothing)) for n, one in part), query)
        yield bucketed(sources, query.aggregates, part[0][1].bounds.short_series)


def curve_over(series: Series, axis: BucketAxis, smoothing: Smoothing | None = None) -> Curve:
    """The x and the values of a whole series, ascending by x, without its single value. Smoothing changes no x."""
    curve = _points(series, LEAST, GREATEST) if axis is BucketAxis.ITER else curve_over_time(series.points(), axis)
    return curve if smoothing is None else Curve(*smoothing.whole(*curve))


# --- over iterations: how wide ---------------------------------------------------------------------


class _Extent(NamedTuple):
    """Of a series: the least and the greatest number of points it may have, its first and its last iteration."""

    fewest: int
    most: int
    first: int
    last: int


def _by_iteration(
    numbered: Sequence[tuple[int, Series]], query: BucketQuery, curves: KeptCurves, extremes: Extremes | None
) -> Iterator[Source]:
    series = [one_series for _, one_series in numbered]
    shifts_by_id = chunk_shifts(series, query.range.least, query.range.greatest) if query.smoothing is None else {}
    for (number, one_series), extent in zip(numbered, _extents(series), strict=True):
        if extent.first == extent.last == SINGLE_VALUE_ITERATION:
            continue
        interval = _interval(one_series, extent, query.width)
        if query.smoothing is None:
            kept = curves if extent.most >= one_series.bounds.kept_curve_points else None
            yield Source(
                number, *_parts(one_series, interval, shifts_by_id.get(one_series.merged.id, []), query, kept, extremes)
            )
        else:
            key = Key(
                one_series.owner, one_series.name, one_series.merged.id, query.smoothing, columns_for(query.aggregates)
            )
            begun = Known.begin(query.smoothing, _ends(one_series, extent))
            yield Source(number, *_smoothed_parts(one_series, key, begun, interval, query, curves))


def _extents(series: Sequence[Series]) -> Iterator[_Extent]:
    rows = merged_stats(one_series.merged for one_series in series)
    columns = (rows[name].tolist() for name in ("count", "min_iter", "max_iter"))
    for one_series, count, first, last in zip(series, *columns, strict=True):
        if not one_series.recent:
            yield _Extent(count, count, first, last)
            continue
        iters = one_series.hot.iters
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


def _parts(
    series: Series,
    interval: int,
    shifts: Sequence[int],
    query: BucketQuery,
    curves: KeptCurves | None,
    extremes: Extremes | None,
) -> tuple[int, list[Part]]:
    """The interval, perhaps changed, and the pieces and points to put into buckets.

    `shifts` are those of the chunks with points in the range, ascending. Blocks are kept if `curves` are given.
    """
    low, high, bounds = query.range.least, query.range.greatest, series.bounds
    if interval == 1 or not shifts:
        return interval, [_points(series, low, high)]
    columns = columns_for(query.aggregates)
    shift, interval = fitting(interval, shifts, query, bounds.most_widening)
    if shift is not None:
        kept = None
        if curves is not None and shift == shifts[-1]:
            kept = decoded.blocks_of(series, shift, columns, query.range, curves)
        contents, run = kept.between(low, high) if kept else series.blocks(low, high, shift), bounds.chunks_of_blocks
        few = bounds.short_series // 2
        sum_up = partial(_sum_up_blocks, interval=interval, columns=columns, kept=kept, few=few)
    else:
        contents, run = series.curves(low, high), bounds.chunks_of_points
        sum_up = partial(_sum_up_points, interval=interval, columns=columns, extremes=extremes)
    parts: list[Part] = []
    while chunks := list(islice(contents, run)):
        parts += _of_chunks(series, chunks, low, high, sum_up)
        low = _end(chunks) + 1
    rest = _points(series, low, high) if low <= high else NO_CURVE
    return interval, [*parts, rest] if len(rest.iters) else parts


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


@decoder
def _sum_up_blocks(
    chunks: Sequence[Content], interval: int, columns: ColumnNames, kept: Blocks | None, few: int
) -> Pieces:
    blocks = kept.of(chunks) if kept else decode_blocks([unwrap(body) for _, _, _, body in chunks], columns)
    if len(blocks.x) <= few:  # then it is faster to sum up several series at once
        return blocks
    return sum_up(blocks, bucket_starts(blocks.x, interval))


def _sum_up_points(chunks: Sequence[Content], interval: int, columns: ColumnNames, extremes: Extremes | None) -> Pieces:
    iters, values = _rooms.room.decode([(length, body) for _, _, length, body in chunks])
    return sum_up_points(iters, values, bucket_starts(iters, interval), columns, extremes)


# --- over iterations: smoothed ---------------------------------------------------------------------


def _smoothed_parts(
    series: Series, key: Key, stretches_kept: Known, interval: int, query: BucketQuery, curves: KeptCurves
) -> tuple[int, list[Part]]:
    """The interval, perhaps changed, and smoothed points in the range, or sums of them. `known` is nothing yet."""
    low, high = query.range.least, query.range.greatest
    in_blocks = False
    if (shift := _shift(series)) is not None:
        merged = state(series.conn, "merged_journal")
        stretches_kept = curves.find(key, replace(stretches_kept, shift=shift), merged).until(series.settled_end)
        if (width := of_blocks(interval, shift, query, series.bounds.most_widening)) is not None:
            in_blocks, interval, stretches_kept = True, width, _known_further(series, stretches_kept, key.columns)
            curves.keep(key, stretches_kept, merged)

    def part(x: Int64Array, values: Float64Array) -> Part:
        inside = within(Curve(x, values), low, high) if len(x) else NO_CURVE
        if interval == 1 or not len(inside.iters):
            return inside
        return _in_blocks(*inside, interval, key.columns)

    parts: list[Part] = []
    start = LEAST
    for stretch in stretches_kept.stretches:
        if in_blocks and low <= stretch.first and stretch.last <= high:
            parts.append(stretch.pieces)
        elif low <= stretch.last and stretch.first <= high:
            parts.append(part(*copy(stretch.before).feed(*_points(series, start, stretch.end))))
        start = stretch.end + 1
    smoother = copy(stretches_kept.after)
    parts += [part(*smoother.feed(*curve)) for curve in _some_at_a_time(series, start)]
    return interval, [*parts, part(*smoother.rest())]


def _shift(series: Series) -> int | None:
    """How wide the blocks of the smoothed curve are, as an exponent of 2; None if it is too short to be kept."""
    row, bounds = merged_stats([series.merged])[0], series.bounds
    count = int(row["count"])
    if count < bounds.smoothed_points:
        return None
    larger = (count // bounds.summed_points // bounds.smoothed_blocks).bit_length()
    return shift_of(int(row["min_iter"]), int(row["max_iter"]), count, bounds.summed_points) + larger


def _known_further(series: Series, curve_kept: Known, columns: ColumnNames) -> Known:
    """What is known of the curve with all further stretches that can be kept."""
    stretches, size, smoother = list(curve_kept.stretches), curve_kept.size, curve_kept.after
    bounds = series.bounds
    for curve in _some_at_a_time(series, stretches[-1].end + 1 if stretches else LEAST):
        before, smoother = smoother, copy(smoother)
        is_settled = len(curve.iters) >= bounds.smoothed_points and curve.iters[-1] < series.settled_end
        x, values = smoother.feed(*curve) if is_settled else NO_CURVE
        if not len(x) or size > bounds.bytes_of_a_curve:
            return replace(curve_kept, stretches=stretches, after=before)
        pieces = _in_blocks(x, values, 1 << curve_kept.shift, columns)
        stretches.append(Stretch(int(curve.iters[-1]), before, int(x[0]), int(x[-1]), pieces))
        size += stretches[-1].size
    return replace(curve_kept, stretches=stretches, after=smoother)


def _in_blocks(iters: Int64Array, values: Float64Array, interval: int, columns: ColumnNames) -> Pieces:
    """Sums of smoothed points. Where no iteration is left out, it is known without a search where blocks begin."""
    first, length = int(iters[0]), len(iters)
    x = Progression(first, 1, length) if int(iters[-1]) - first == length - 1 else iters
    return sum_up_points(x, values, bucket_starts(x, interval), columns)


def _some_at_a_time(series: Series, low: int) -> Iterator[Curve]:
    """The points from `low` on, `smoothed_points` or a few more at a time."""
    ranges = series.ranges(low, series.bounds.smoothed_points) if low <= GREATEST else ()
    return (_points(series, *ends) for ends in ranges)


def _points(series: Series, low: int, high: int) -> Curve:
    return without_single_value(series.curve(low, high))
