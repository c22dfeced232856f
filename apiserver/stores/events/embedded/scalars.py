"""Reads scalars from `Series` views: stats, pages of points, and last values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from apiserver.events.model import Owner, ScalarPoints, ScalarPosition, ScalarStats
from apiserver.events.queries import GREATEST, LEAST, PageQuery
from apiserver.stores.events.codec import stats
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.codec.points import NO_POINTS, concat, first_of, scalar_points
from apiserver.stores.events.codec.stats import StatsArray
from apiserver.stores.events.embedded.hot import points_by_series
from apiserver.stores.events.embedded.series import Series, merged_stats
from apiserver.stores.events.embedded.unsettled import in_parts
from apiserver.stores.events.embedded.walks import SeriesWalk, walk_together

# --- stats -----------------------------------------------------------------------------------------


def stats_of(series: Sequence[Series]) -> StatsArray:
    """The stats of all points, a row for each series."""
    rows = merged_stats(one.merged for one in series).copy()
    hot = [n for n, one in enumerate(series) if one.recent]
    if not hot:
        return rows
    points, starts = points_by_series([series[n].recent for n in hot])
    long = series[0].bounds.long_group
    recent = stats.of_groups(points.iters, points.values, points.timestamps, starts, long)
    overlapping = recent["min_iter"] <= rows["max_iter"][hot]
    rows[hot] = stats.combine(rows[hot], recent)
    for n in np.array(hot)[overlapping].tolist():
        rest = series[n].points(series[n].settled_end)
        unsettled = stats.of_points(rest, long)
        rows[n] = stats.combine(stats.fold(series[n].settled_stats()), unsettled)[0]
    return rows


def scalar_stats(
    owners: Sequence[Owner], series: Sequence[Sequence[Series]], *, spread: bool
) -> list[list[ScalarStats]]:
    """The stats of each owner's series, in their order; with `spread`, all of them."""
    names = [[one.name for one in of_owner] for of_owner in series]
    return stats.models_of_each(owners, names, stats_of([*chain.from_iterable(series)]), spread=spread)


# --- points ----------------------------------------------------------------------------------------


def page(series: Sequence[Series], query: PageQuery[ScalarPosition], worker_names: Sequence[str]) -> ScalarPoints:
    """A page by iteration."""
    if query.until is not None:
        series = [one for one, first in zip(series, _first_iterations(series), strict=True) if first <= query.until]
    points, numbers = NO_POINTS, np.empty(0, np.int32)
    for which in in_parts(series):
        walks = [_walk_beyond(series[n], query.after, query.descending) for n in which.tolist()]
        more, walked = walk_together(walks, query)
        numbers_of_more = which[walked].astype(np.int32)
        if len(numbers):
            points, numbers = first_of(concat([points, more]), np.concatenate([numbers, numbers_of_more]), query)
        else:
            points, numbers = more, numbers_of_more
    return scalar_points(points, numbers, [one.name for one in series], worker_names)


def _first_iterations(series: Sequence[Series]) -> list[int]:
    rows = zip(series, merged_stats(one.merged for one in series)["min_iter"].tolist(), strict=True)
    return [min(first, int(one.hot.iters[0])) if one.recent else first for one, first in rows]


def _walk_beyond(series: Series, after: ScalarPosition | None, descending: bool) -> SeriesWalk:
    if after is None:
        return SeriesWalk(series, GREATEST if descending else LEAST, descending)
    position = (after.metric, after.variant)
    if descending:
        return SeriesWalk(series, after.iter if series.name < position else after.iter - 1, descending)
    return SeriesWalk(series, after.iter if series.name > position else after.iter + 1, descending)


def last_values(series: Sequence[Series], n: int) -> dict[Name, list[float]]:
    """The last `n` values by iteration of each series, oldest first."""
    values: dict[int, list[float]] = {}
    for which in in_parts(series):
        for number in which.tolist():
            walk = SeriesWalk(series[number], GREATEST, descending=True)
            walk.fill(n)
            values[number] = walk.points().values[:n][::-1].tolist()
    return {one.name: values[number] for number, one in enumerate(series)}
