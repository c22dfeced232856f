"""Reads one curve of many runs: the same series of each owner, whose blocks are found by one request.

Columns are fetched, and decoded in threads, for some owners at a time. So memory is bounded however many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from apiserver.common import answers
from apiserver.common.off_loop import off_loop
from apiserver.events.aggregates import CurvesInBuckets, Neighbours
from apiserver.events.model import BucketAxis
from apiserver.events.queries import GREATEST, LEAST, CommonBuckets, CurvesQuery, Range
from apiserver.stores.events.blocks.buckets import curve_over, load_curves, some_buckets
from apiserver.stores.events.blocks.loading import Loaded, Loader, Spans, curve_in, times_of
from apiserver.stores.events.blocks.stretches import Numbered, OfSeries, Stretch, numbered, size_of
from apiserver.stores.events.codec.bucketing import nearest_bucket, put_into
from apiserver.stores.events.codec.extremes import Extremes
from apiserver.stores.events.codec.points import Points, Workers, concat, ends_of_all, without_single_value
from apiserver.stores.events.codec.reports import Span, joined
from apiserver.stores.events.parts import in_parts

#: The place of an owner in the query, and the stretches of its series.
_Curve = tuple[int, Sequence[Stretch]]


def _curves(found: Sequence[OfSeries]) -> list[_Curve]:
    """The curve of each owner that has the series."""
    return [(place, some) for place, of_owner in enumerate(found) for some in of_owner.values()]


# --- buckets ----------------------------------------------------------------------------------------


async def in_buckets(
    loader: Loader, series: Sequence[OfSeries], asked: CurvesQuery, buckets: CommonBuckets
) -> CurvesInBuckets:
    """All curves in the buckets."""
    answers.will_read(8 * (len(series) + 2) * buckets.count)
    made = CurvesInBuckets.empty(len(series), buckets.count)
    curves = _curves(series)
    places = np.array([place for place, _ in curves], np.intp)
    extremes = Extremes(made, buckets)
    async for buckets_of_part in some_buckets(
        loader, [stretches for _, stretches in curves], buckets.of(asked), extremes
    ):
        put_into(made, buckets, places, buckets_of_part)
    extremes.put()
    return made


# --- ends -------------------------------------------------------------------------------------------


async def ends(loader: Loader, series: Sequence[OfSeries], axis: BucketAxis) -> tuple[int, int] | None:
    """The least and the greatest x of all series together, without single values."""
    stretches = numbered(some for _, some in _curves(series))
    spans = {} if axis is BucketAxis.ITER else await loader.spans(one for _, one in stretches)
    each: list[tuple[int, Span]] = []
    unknown: list[Numbered] = []
    for number, one in stretches:
        span = _known_span(one, axis, spans)
        if span is None:
            unknown.append(Numbered(number, one))
        else:
            each.append((number, span))
    for some in await loader.read(unknown, lambda part: list(_spans_of_points(part, axis)), Workers()):
        each += some
    return ends_of_all([(first, last) for _, first, last in joined(each).values()], axis)


def _known_span(stretch: Stretch, axis: BucketAxis, spans: Spans) -> Span | None:
    """The span of a stretch, if it can be told without its points. Durations have that of their timestamps."""
    if stretch.may_have_single_value:
        return None
    if axis is BucketAxis.ITER:
        return Span(stretch.size, stretch.first, stretch.last)
    if stretch.chunk is None:
        return None
    times = times_of(spans[stretch.chunk.id])
    return Span(stretch.size, times.least, times.greatest)


def _spans_of_points(stretches: Iterable[tuple[int, Points]], axis: BucketAxis) -> Iterator[tuple[int, Span]]:
    for number, points in stretches:
        points = without_single_value(points)
        x = points.iters if axis is BucketAxis.ITER else points.timestamps
        if len(x):
            yield number, Span(len(x), int(x.min()), int(x.max()))


# --- neighbours -------------------------------------------------------------------------------------


async def neighbours(
    loader: Loader, series: Sequence[OfSeries], asked: CurvesQuery, buckets: CommonBuckets, *, before: bool
) -> Neighbours:
    """The nearest bucket of each owner outside."""
    answers.will_read(16 * len(series))
    made, curves = Neighbours.empty(len(series)), _curves(series)
    if asked.axis is BucketAxis.ITER and asked.smoothing is None:
        await _search(loader, curves, _Outside(buckets, before), made)
        return made
    for part in in_parts(curves, lambda curve: size_of(curve[1]), loader.bounds.points_at_a_time):
        await _of_whole_curves(loader, part, asked, _Outside(buckets, before), made)
    return made


class _Outside(NamedTuple):
    """What lies before some buckets, or behind them."""

    buckets: CommonBuckets
    before: bool

    @property
    def range(self) -> Range:
        """All that lies there."""
        inside = self.buckets.range
        return Range(LEAST, inside.least - 1) if self.before else Range(inside.greatest + 1, GREATEST)

    def until_bucket_of(self, x: int, stretches: Sequence[Stretch]) -> int:
        """How many of the stretches, the nearest first, have to be read to know all points of the bucket of x."""
        width = self.buckets.width
        start = x // width * width
        if self.before:
            return sum([one.last >= start for one in stretches])
        return sum([one.first < start + width for one in stretches])


async def _of_whole_curves(
    loader: Loader, curves: Sequence[_Curve], asked: CurvesQuery, outside: _Outside, made: Neighbours
) -> None:
    loaded = await load_curves(loader, chain.from_iterable(stretches for _, stretches in curves), asked.axis)

    def put() -> None:
        for place, stretches in curves:
            curve = curve_over(stretches, loaded, asked.axis, asked.smoothing)
            nearest = nearest_bucket(*curve, outside.buckets, before=outside.before)
            made.numbers[place], made.means[place] = nearest

    await off_loop(sum([size_of(stretches) for _, stretches in curves]), put)


class _Search(NamedTuple):
    """Looks for the finite value of a curve that is nearest to the buckets."""

    place: int
    stretches: Sequence[Stretch]
    """Those in which it may be, the nearest first."""
    number: int = 1
    """How many of them are read next."""

    @property
    def next(self) -> Sequence[Stretch]:
        """The stretches that are read next."""
        return self.stretches[: self.number]

    def step(self, loaded: Loaded, outside: _Outside) -> _Search | tuple[float, float]:
        """The nearest bucket, or where to search on: twice as far, or up to the end of the bucket."""
        ascending = self.next[::-1] if outside.before else self.next
        curve = without_single_value(concat([curve_in(one, loaded, outside.range) for one in ascending]))
        finite = np.flatnonzero(np.isfinite(curve.values))
        if not len(finite):
            return _Search(self.place, self.stretches[self.number :], 2 * self.number)
        nearest = int(curve.iters[finite[-1 if outside.before else 0]])
        number = outside.until_bucket_of(nearest, self.stretches)
        if number > self.number:
            return self._replace(number=number)
        return nearest_bucket(*curve, outside.buckets, before=outside.before)


async def _search(loader: Loader, curves: Sequence[_Curve], outside: _Outside, made: Neighbours) -> None:
    near_first = -1 if outside.before else 1
    left = [
        _Search(place, [stretch for stretch in some[::near_first] if stretch.meets(outside.range)])
        for place, some in curves
    ]
    while left := [search for search in left if search.stretches]:
        parts, left = [*in_parts(left, lambda search: size_of(search.next), loader.bounds.points_at_a_time)], []
        for part in parts:
            for search, found in zip(part, await _steps(loader, part, outside), strict=True):
                if isinstance(found, _Search):
                    left.append(found)
                else:
                    made.numbers[search.place], made.means[search.place] = found


async def _steps(loader: Loader, part: Sequence[_Search], outside: _Outside) -> list[_Search | tuple[float, float]]:
    loaded = await loader.curves(chain.from_iterable(one.next for one in part))
    return await off_loop(sum([size_of(one.next) for one in part]), lambda: [one.step(loaded, outside) for one in part])
