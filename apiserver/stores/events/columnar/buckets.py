"""Buckets of series: made of the sums of chunks where whole sums fit into buckets, else of points.

To let sums be used, buckets become up to a tenth wider, as in the embedded store. Once it is known which blocks there
are, columns are fetched at most twice:

1. The curves of stretches where blocks overlap: how wide buckets are depends on the number of points.
2. The sums, or else the curves, of blocks that are alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import NamedTuple

import numpy as np

from apiserver import answers
from apiserver.events.aggregates import Buckets, columns_for
from apiserver.events.model import SINGLE_VALUE_ITERATION, BucketAxis, Owner
from apiserver.events.queries import EVERYWHERE, GREATEST, BucketQuery, Range
from apiserver.off_loop import off_loop
from apiserver.stores.events.base import since_first
from apiserver.stores.events.columnar.blocks import Block, BlockStore, Name
from apiserver.stores.events.columnar.encoding import CURVE, SUMS, WHOLE, Workers, sums_of
from apiserver.stores.events.columnar.loading import Cache, Loaded, curve_in, load, points_in
from apiserver.stores.events.columnar.stretches import OfSeries, Stretch
from apiserver.stores.events.embedded.bucketing import Part, Source, bucketed
from apiserver.stores.events.embedded.buckets import MOST_WIDENING
from apiserver.stores.events.embedded.pieces import ColumnNames
from apiserver.stores.events.embedded.points import Columns, Curve, concat, curve_of, take, within


async def buckets(store: BlockStore, cache: Cache, owner: Owner, found: OfSeries, wanted: BucketQuery) -> list[Buckets]:
    """The buckets of each series that has a curve, not only a single value."""
    size = sum([stretch.size for some in found.values() for stretch in some])
    if wanted.axis is not BucketAxis.ITER or wanted.smoothing is not None:
        whole = await load(store, cache, owner, _all_columns(chain.from_iterable(found.values()), WHOLE))
        return await off_loop(size, lambda: _bucketed(_of_whole_curves(found, whole, wanted), wanted))
    overlapping = (stretch for some in found.values() for stretch in some if _plain(stretch) is None)
    curves = await load(store, cache, owner, _all_columns(overlapping, (CURVE,)))
    plans = [plan for name, some in found.items() if (plan := _plan(name, some, curves, wanted)) is not None]
    loaded = await load(store, cache, owner, (one for plan in plans for one in plan.wanted()))
    return await off_loop(size, lambda: _bucketed(_of_plans(plans, loaded, wanted), wanted))


def _all_columns(some: Iterable[Stretch], names: Sequence[str]) -> Iterator[tuple[Block, Sequence[str]]]:
    return ((part.block, names) for stretch in some for part in stretch.parts)


def _bucketed(sources: Iterable[tuple[Name, Source]], wanted: BucketQuery) -> list[Buckets]:
    named = list(sources)
    found = sorted(bucketed((source for _, source in named), wanted.aggregates))
    answers.will_read(wanted.size(len(found), sum([len(one.x) for one in found])))
    return [Buckets(*name, one.x, one.values) for (name, _), one in zip(named, found, strict=True)]


# --- of whole curves: over times, or smoothed -------------------------------------------------------


def _of_whole_curves(found: OfSeries, loaded: Loaded, wanted: BucketQuery) -> Iterator[tuple[Name, Source]]:
    for number, (name, some) in enumerate(found.items()):
        curve = _curve_over(some, loaded, wanted.axis)
        if len(curve.iters):
            interval = wanted.width(len(curve.iters), int(curve.iters[0]), int(curve.iters[-1]))
            if wanted.smoothing is not None:
                curve = Curve(*wanted.smoothing.whole(curve.iters, curve.values))
            yield name, Source(number, interval, [within(curve, wanted.range.least, wanted.range.greatest)])


def _curve_over(some: Sequence[Stretch], loaded: Loaded, axis: BucketAxis) -> Curve:
    """The x and the values of a whole series, ascending by x, without its single value."""
    workers = Workers()
    points = concat([points_in(stretch, loaded, EVERYWHERE, workers) for stretch in some])
    points = _without_single_value(points)
    if axis is BucketAxis.ITER:
        return curve_of(points)
    curve = Curve(points.timestamps, points.values)
    curve = take(curve, np.argsort(curve.iters, kind="stable"))
    return Curve(since_first(curve.iters), curve.values) if axis is BucketAxis.DURATION else curve


def _without_single_value(points: Columns) -> Columns:
    single = points.iters == SINGLE_VALUE_ITERATION
    return take(points, ~single) if single.any() else points


# --- over iterations --------------------------------------------------------------------------------


class _Plan(NamedTuple):
    """How wide the buckets of a series are, and what they are made of, ascending."""

    name: Name
    interval: int
    range: Range
    of: Sequence[Curve | Stretch]
    """Points that are known, and stretches where a block is alone."""
    shift: int | None
    """Sums that are as wide as this, or narrower, fit into the buckets. None: there are no such sums."""

    def wanted(self) -> Iterator[tuple[Block, Sequence[str]]]:
        """The blocks that the buckets are made of, and which columns of each."""
        for part in self.of:
            if isinstance(part, Stretch):
                yield part.parts[0].block, (SUMS,) if self._by_sums(part) else (CURVE,)

    def _by_sums(self, part: Curve | Stretch) -> bool:
        if not isinstance(part, Stretch) or self.shift is None:
            return False
        statement = part.parts[0].block.statement
        is_inside = self.range.least <= part.first and part.last <= self.range.greatest
        return is_inside and statement is not None and statement.shift <= self.shift

    def parts(self, loaded: Loaded, columns: ColumnNames) -> Iterator[Part]:
        """The points in the range, or sums of them."""
        for by_sums, some in groupby(self.of, self._by_sums):
            if by_sums:
                yield sums_of([loaded[part.parts[0].block.id] for part in some if isinstance(part, Stretch)], columns)
                continue
            for part in some:
                if isinstance(part, Stretch):
                    yield curve_in(part, loaded, self.range)
                else:
                    yield within(part, self.range.least, self.range.greatest)


def _of_plans(plans: Sequence[_Plan], loaded: Loaded, wanted: BucketQuery) -> Iterator[tuple[Name, Source]]:
    columns = columns_for(wanted.aggregates)
    for number, plan in enumerate(plans):
        yield plan.name, Source(number, plan.interval, list(plan.parts(loaded, columns)))


def _plan(name: Name, some: Sequence[Stretch], loaded: Loaded, wanted: BucketQuery) -> _Plan | None:
    """None: the series has no curve."""
    found: list[Curve | Stretch] = []
    ends: list[tuple[int, int, int]] = []
    for stretch in some:
        if (block := _plain(stretch)) is not None:
            found.append(stretch)
            ends.append((block.count, block.first, block.last))
            continue
        curve = _without_single_value(curve_in(stretch, loaded, EVERYWHERE))
        if len(curve.iters):
            found.append(curve)
            ends.append((len(curve.iters), int(curve.iters[0]), int(curve.iters[-1])))
    if not found:
        return None
    interval = wanted.width(sum([count for count, _, _ in ends]), ends[0][1], ends[-1][2])
    inside = [
        part
        for part, (_, first, last) in zip(found, ends, strict=True)
        if first <= wanted.range.greatest and wanted.range.least <= last
    ]
    alone = [part.parts[0].block.statement for part in inside if isinstance(part, Stretch)]
    shifts = {statement.shift for statement in alone if statement is not None}
    usable = [(shift, wider) for shift in shifts if (wider := _widened(interval, shift)) is not None]
    shift, interval = max(usable) if usable and interval > 1 else (None, interval)
    return _Plan(name, interval, wanted.range, inside, shift)


def _plain(stretch: Stretch) -> Block | None:
    """The block that is alone in the stretch, if there is one, and no single value in it."""
    return None if stretch.first <= SINGLE_VALUE_ITERATION <= stretch.last else stretch.alone


def _widened(interval: int, shift: int) -> int | None:
    """The interval that is used instead, a multiple of 2^shift; None if that would change it too much."""
    wider = -(-interval >> shift) << shift
    return wider if wider - interval <= interval * MOST_WIDENING and wider <= GREATEST else None
