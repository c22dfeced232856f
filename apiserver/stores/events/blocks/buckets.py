"""Buckets of series: made of the sums of chunks where whole sums fit into buckets, else of points.

To let sums be used, buckets become wider, or finer, as in the embedded store. Once it is known which blocks there are,
the columns of some series at a time are fetched, at most twice:

1. The curves of stretches where blocks overlap: how wide buckets are depends on the number of points.
2. The sums, or else the curves, of blocks that are alone. Sums are few, so those of many series are fetched together.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from enum import Enum, auto
from itertools import chain, groupby, islice
from typing import NamedTuple

from apiserver.common import answers
from apiserver.common.off_loop import off_loop
from apiserver.events.aggregates import Buckets, columns_for
from apiserver.events.model import BucketAxis
from apiserver.events.queries import EVERYWHERE, BucketQuery, Range
from apiserver.events.smoothing import Smoothing
from apiserver.stores.events.blocks.blocks import Block
from apiserver.stores.events.blocks.bounds import ColumnarBounds
from apiserver.stores.events.blocks.encoding import CURVE, SUMS, sums_of
from apiserver.stores.events.blocks.loading import Loaded, Loader, Wanted, curve_in, points_in
from apiserver.stores.events.blocks.stretches import OfSeries, Stretch, size_of
from apiserver.stores.events.codec.bucketing import InBuckets, Part, Source, bucket_starts, bucketed, fitting, of_curves
from apiserver.stores.events.codec.chunks import Room
from apiserver.stores.events.codec.extremes import Extremes
from apiserver.stores.events.codec.pieces import POINTS_A_BLOCK, ColumnNames, sum_up_points
from apiserver.stores.events.codec.points import Curve, Workers, concat, curve_over_time, within, without_single_value
from apiserver.stores.events.parts import in_parts

#: So many blocks of a series are summed up at once: about as many as fit into a processor's cache.
CHUNKS_OF_POINTS = 32

#: A series and its number.
_Numbered = tuple[int, Sequence[Stretch]]


async def buckets(loader: Loader, series: Sequence[OfSeries], query: BucketQuery) -> list[list[Buckets]]:
    """For each query's series, the buckets of those that have a curve, not only a single value, in their order."""
    names = [*chain.from_iterable(series)]
    made: dict[int, Buckets] = {}
    async for some in some_buckets(loader, [one for of_query in series for one in of_query.values()], query):
        answers.will_read(query.size(len(some), sum([len(one.x) for one in some])))
        made |= {number: Buckets(*names[number], x, values) for number, x, values in some}
    numbers = iter(range(len(names)))
    return [[made[number] for number in islice(numbers, len(some)) if number in made] for some in series]


def some_buckets(
    loader: Loader, series: Sequence[Sequence[Stretch]], query: BucketQuery, extremes: Extremes | None = None
) -> AsyncIterator[list[InBuckets]]:
    """The same by the numbers of the series, in any order, some series at a time.

    Points that `extremes` takes have none in their buckets.
    """
    if query.axis is BucketAxis.ITER and query.smoothing is None:
        return _by_plans(loader, enumerate(series), query, extremes)
    return _of_whole_curves(loader, enumerate(series), query)


# --- of whole curves: over times, or smoothed -------------------------------------------------------


async def _of_whole_curves(
    loader: Loader, series: Iterable[_Numbered], query: BucketQuery
) -> AsyncIterator[list[InBuckets]]:
    for part in in_parts(series, lambda one: size_of(one[1]), loader.bounds.points_at_a_time):
        yield await _of_some_curves(loader, part, query)


async def _of_some_curves(loader: Loader, series: Sequence[_Numbered], query: BucketQuery) -> list[InBuckets]:
    loaded = await load_curves(loader, chain.from_iterable(some for _, some in series), query.axis)
    curves = ((number, curve_over(some, loaded, query.axis, query.smoothing)) for number, some in series)
    size = sum([size_of(some) for _, some in series])
    return await off_loop(size, lambda: bucketed(of_curves(curves, query), query.aggregates))


async def load_curves(loader: Loader, some: Iterable[Stretch], axis: BucketAxis) -> Loaded:
    """The columns that `curve_over` needs of the stretches."""
    return await (loader.curves(some) if axis is BucketAxis.ITER else loader.whole(some))


def curve_over(
    stretches: Sequence[Stretch], loaded: Loaded, axis: BucketAxis, smoothing: Smoothing | None = None
) -> Curve:
    """The x and the values of a whole series, ascending by x, without its single value. Smoothing changes no x."""
    if axis is BucketAxis.ITER:
        curve = without_single_value(concat([curve_in(stretch, loaded, EVERYWHERE) for stretch in stretches]))
    else:
        workers = Workers()
        curve = curve_over_time(
            concat([points_in(stretch, loaded, EVERYWHERE, workers) for stretch in stretches]), axis
        )
    return curve if smoothing is None else Curve(*smoothing.whole(*curve))


# --- over iterations --------------------------------------------------------------------------------


async def _by_plans(
    loader: Loader, series: Iterable[_Numbered], query: BucketQuery, extremes: Extremes | None
) -> AsyncIterator[list[InBuckets]]:
    at_a_time = loader.bounds.points_at_a_time
    for part in in_parts(series, lambda one: 1 + size_of(_overlapping(one[1])), at_a_time):
        parts = in_parts(await _plans(loader, part, query), lambda plan: plan.size, loader.bounds.fetched_points)
        async for plans, loaded in loader.load_ahead(parts, lambda plans: chain(*(one.wanted() for one in plans))):
            yield await _made(plans, loaded, query, extremes)


def _overlapping(some: Iterable[Stretch]) -> list[Stretch]:
    """The stretches whose points have to be read before it is known how many there are."""
    return [one for one in some if _plain(one) is None]


async def _plans(loader: Loader, series: Sequence[_Numbered], query: BucketQuery) -> list[_Plan]:
    overlapping = [stretch for _, some in series for stretch in _overlapping(some)]
    loaded = await loader.curves(overlapping)
    made = (_plan(number, some, loaded, query, loader.bounds) for number, some in series)
    return await off_loop(len(series) + size_of(overlapping), lambda: [one for one in made if one is not None])


async def _made(
    plans: Sequence[_Plan], loaded: Loaded, query: BucketQuery, extremes: Extremes | None
) -> list[InBuckets]:
    make = _Making(loaded, columns_for(query.aggregates), extremes, Room())
    sources = (Source(one.number, one.interval, list(make.parts(one))) for one in plans)
    return await off_loop(sum([one.size for one in plans]), lambda: bucketed(sources, query.aggregates))


class _Plan(NamedTuple):
    """How wide the buckets of a series are, and what they are made of, ascending."""

    number: int
    """The number of the series."""
    interval: int
    range: Range
    of: Sequence[Curve | Stretch]
    """Points that are known, and stretches where a block is alone."""
    shift: int | None
    """Sums that are as wide as this, or narrower, fit into the buckets. None: there are no such sums."""
    long: int
    """Points of a long block."""

    @property
    def size(self) -> int:
        """How many points, and sums of points, are read for it, about."""
        return sum([1 + (len(part[0]) if isinstance(part, Curve) else self._size_of(part)) for part in self.of])

    def _size_of(self, part: Stretch) -> int:
        return part.size // POINTS_A_BLOCK if self.way(part) is _Way.SUMS else part.size

    def wanted(self) -> Iterator[Wanted]:
        """The blocks that the buckets are made of, and which columns of each."""
        for part in self.of:
            if isinstance(part, Stretch):
                yield part.parts[0].block, (SUMS,) if self.way(part) is _Way.SUMS else (CURVE,)

    def way(self, part: Curve | Stretch) -> _Way:
        """How the buckets are made of a part."""
        if not isinstance(part, Stretch) or not self.range.least <= part.first <= part.last <= self.range.greatest:
            return _Way.POINTS
        block = part.parts[0].block
        if self.shift is not None and block.statement is not None and block.statement.shift <= self.shift:
            return _Way.SUMS
        is_long = block.count >= self.long and block.in_bundle is None
        return _Way.SUMMED_UP if self.interval > 1 and is_long else _Way.POINTS


class _Way(Enum):
    """How buckets are made of a block, or of points."""

    SUMS = auto()
    """Of the sums that a chunk has."""
    SUMMED_UP = auto()
    """Of the points of a long block, which are summed up as they are decoded."""
    POINTS = auto()
    """Of points, together with those of other series."""


class _Making(NamedTuple):
    """Makes the points, and the sums of points, that buckets are made of."""

    loaded: Loaded
    columns: ColumnNames
    extremes: Extremes | None
    room: Room

    def parts(self, plan: _Plan) -> Iterator[Part]:
        """The points in the range, or sums of them."""
        for way, parts in groupby(plan.of, plan.way):
            if way is _Way.POINTS:
                yield from (self._points(part, plan.range) for part in parts)
                continue
            blocks = (part.parts[0].block for part in parts if isinstance(part, Stretch))
            if way is _Way.SUMS:
                yield sums_of([self.loaded[block.id] for block in blocks], self.columns)
                continue
            while run := list(islice(blocks, CHUNKS_OF_POINTS)):
                iters, values = self.room.decode([(block.count, self.loaded[block.id][CURVE]) for block in run])
                starts = bucket_starts(iters, plan.interval)
                yield sum_up_points(iters, values, starts, self.columns, self.extremes)

    def _points(self, part: Curve | Stretch, range: Range) -> Curve:
        if isinstance(part, Stretch):
            return curve_in(part, self.loaded, range)
        return within(part, range.least, range.greatest)


def _plan(
    number: int, stretches: Sequence[Stretch], loaded: Loaded, query: BucketQuery, bounds: ColumnarBounds
) -> _Plan | None:
    """None: the series has no curve."""
    parts: list[Curve | Stretch] = []
    ends: list[tuple[int, int, int]] = []
    for stretch in stretches:
        if (block := _plain(stretch)) is not None:
            parts.append(stretch)
            ends.append((block.count, block.first, block.last))
            continue
        curve = without_single_value(curve_in(stretch, loaded, EVERYWHERE))
        if len(curve.iters):
            parts.append(curve)
            ends.append((len(curve.iters), int(curve.iters[0]), int(curve.iters[-1])))
    if not parts:
        return None
    interval = query.width(sum([count for count, _, _ in ends]), ends[0][1], ends[-1][2])
    inside = [
        part
        for part, (_, first, last) in zip(parts, ends, strict=True)
        if first <= query.range.greatest and query.range.least <= last
    ]
    alone = [part.parts[0].block.statement for part in inside if isinstance(part, Stretch)]
    shifts = {statement.shift for statement in alone if statement is not None}
    shift, interval = fitting(interval, shifts, query, bounds.most_widening)
    return _Plan(number, interval, query.range, inside, shift, bounds.long_block)


def _plain(stretch: Stretch) -> Block | None:
    """The block that is alone in the stretch, if there is one, and no single value in it."""
    return None if stretch.may_have_single_value else stretch.alone
