"""What readers ask of scalars: stats, buckets, pages of points and last values, over `Series` views."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from apiserver.events.model import (
    SINGLE_VALUE_ITERATION,
    BucketAxis,
    BucketPlan,
    Buckets,
    Owner,
    ScalarPoints,
    ScalarPosition,
    ScalarStats,
)
from apiserver.stores.events.embedded import aggregates, stats
from apiserver.stores.events.embedded.aggregates import BLOCK, BLOCKS_A_BUCKET, Pieces, Source
from apiserver.stores.events.embedded.hot import points_by_series
from apiserver.stores.events.embedded.points import NO_CURVE, Columns, Curve, take
from apiserver.stores.events.embedded.series import Chunk, Series, merged_stats, read_tails
from apiserver.stores.events.embedded.stats import GREATEST, LEAST, StatsArray
from apiserver.stores.events.embedded.walks import SeriesWalk, walk_together

# --- stats -----------------------------------------------------------------------------------------


def stats_of(series: Sequence[Series]) -> StatsArray:
    """One row for each series."""
    rows = merged_stats(one.merged for one in series).copy()
    hot = [n for n, one in enumerate(series) if one.recent]
    if not hot:
        return rows
    points, starts = points_by_series([series[n].recent for n in hot])
    recent = stats.of_groups(points.iters, points.values, points.timestamps, starts)
    overlapping = recent["min_iter"] <= rows["max_iter"][hot]
    rows[hot] = stats.combine(rows[hot], recent)
    for n in np.array(hot)[overlapping].tolist():
        rows[n] = _overlapped(series[n])[0]
    return rows


def _overlapped(series: Series) -> StatsArray:
    rest = series.points(series.settled_end)
    unsettled = stats.of_groups(rest.iters, rest.values, rest.timestamps, np.zeros(1, np.intp))
    return stats.combine(stats.fold(series.settled_stats()), unsettled)


def scalar_stats(owner: Owner, series: Sequence[Series]) -> list[ScalarStats]:
    """The stats of each series, in their order."""
    rows = stats_of(series)
    return [stats.to_model(owner, *one.name, rows[n : n + 1]) for n, one in enumerate(series)]


# --- buckets ---------------------------------------------------------------------------------------


def all_buckets(series: Sequence[Series], axis: BucketAxis, plans: Sequence[BucketPlan]) -> list[Buckets]:
    """The buckets of each plan, in their order; those of an unknown series are empty, single values are left out."""
    read_tails(series)
    by_name = {one.name: one for one in series}
    return aggregates.bucketed([_source(by_name.get((plan.metric, plan.variant)), axis, plan) for plan in plans])


def _source(series: Series | None, axis: BucketAxis, plan: BucketPlan) -> Source:
    if series is None:
        content, interval = NO_CURVE, plan.interval
    elif axis is BucketAxis.TIMESTAMP:
        content, interval = _by_time(series, plan), plan.interval
    else:
        return Source(plan.metric, plan.variant, *_by_iteration(series, plan))
    return Source(plan.metric, plan.variant, content, interval)


def _by_iteration(series: Series, plan: BucketPlan) -> tuple[Curve | Pieces, int]:
    """What to bucket, and by which interval."""
    low = LEAST if plan.start is None else plan.start
    high = GREATEST if plan.stop is None else plan.stop
    settled = [chunk for chunk in series.chunks(low, high) if chunk.last < series.settled_end]
    usable = [
        low <= chunk.first
        and chunk.last <= high
        and not chunk.first <= SINGLE_VALUE_ITERATION <= chunk.last
        and plan.interval >= BLOCKS_A_BUCKET << chunk.shift
        for chunk in settled
    ]
    block = max((1 << chunk.shift for chunk, use in zip(settled, usable, strict=True) if use), default=0)
    interval = -(-plan.interval // block) * block if block else plan.interval
    if not block or interval > GREATEST:
        return _curve_between(series, low, high), plan.interval
    pieces = [*_settled_pieces(series, settled, usable, low, high), _unsettled_pieces(series, low, high)]
    return aggregates.joined(pieces), interval


def _settled_pieces(
    series: Series, chunks: Sequence[Chunk], usable: Sequence[bool], low: int, high: int
) -> list[Pieces]:
    pieces = []
    for use, run in groupby(range(len(chunks)), key=lambda n: usable[n]):
        numbers = list(run)
        first, last = chunks[numbers[0]].first, chunks[numbers[-1]].last
        if use:
            pieces.append(aggregates.pieces_of_blocks(series.blocks(first, last, BLOCK)))
        else:
            pieces.append(_points_between(series, max(low, first), min(high, last)))
    return pieces


def _unsettled_pieces(series: Series, low: int, high: int) -> Pieces:
    return _points_between(series, max(low, series.settled_end), high)


def _points_between(series: Series, low: int, high: int) -> Pieces:
    return aggregates.pieces_of(_curve_between(series, low, high))


def _curve_between(series: Series, low: int, high: int) -> Curve:
    return _without_single_value(series.curve(low, high))


def _by_time(series: Series, plan: BucketPlan) -> Curve:
    points = _without_single_value(series.points())
    times = points.timestamps
    if plan.start is not None or plan.stop is not None:
        low = LEAST if plan.start is None else plan.start
        high = GREATEST if plan.stop is None else plan.stop
        points = take(points, (times >= low) & (times <= high))
        times = points.timestamps
    curve = Curve(times, points.values)
    if bool((times[1:] >= times[:-1]).all()):
        return curve
    return take(curve, np.argsort(times, kind="stable"))


def _without_single_value(points: Columns) -> Columns:
    at = int(np.searchsorted(points.iters, SINGLE_VALUE_ITERATION))
    if at < len(points.iters) and points.iters[at] == SINGLE_VALUE_ITERATION:
        return take(points, np.arange(len(points.iters)) != at)
    return points


# --- points ----------------------------------------------------------------------------------------


def page(
    series: Sequence[Series],
    after: ScalarPosition | None,
    descending: bool,
    limit: int,
    whole_iterations: bool,
    worker_names: Sequence[str],
) -> ScalarPoints:
    """Up to `limit` points beyond `after`, or somewhat more when iterations are to be whole."""
    walks = [_walk_beyond(one, after, descending) for one in series]
    points, numbers = walk_together(walks, limit, whole_iterations)
    return ScalarPoints(
        names=[one.name for one in series],
        series=numbers,
        iters=points.iters,
        timestamps=points.timestamps,
        values=points.values,
        workers=[worker_names[number] for number in points.workers.tolist()],
        received=points.received,
    )


def _walk_beyond(series: Series, after: ScalarPosition | None, descending: bool) -> SeriesWalk:
    if after is None:
        return SeriesWalk(series, GREATEST if descending else LEAST, descending)
    position = (after.metric, after.variant)
    if descending:
        return SeriesWalk(series, after.iter if series.name < position else after.iter - 1, descending)
    return SeriesWalk(series, after.iter if series.name > position else after.iter + 1, descending)


def last_values(series: Series, n: int) -> list[float]:
    """The last `n` values by iteration, oldest first."""
    walk = SeriesWalk(series, GREATEST, descending=True)
    walk.fill(n)
    values: list[float] = walk.points().values[:n][::-1].tolist()
    return values
