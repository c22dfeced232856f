"""Single values: scalars that were reported without an iteration. The SDK sends them with iteration −2³¹."""

from __future__ import annotations

from typing import Any

from apiserver.common.off_loop import off_loop
from apiserver.events.model import LAST_NAME, SINGLE_VALUE_ITERATION, ScalarPoints, ScalarPosition, ScalarStats
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.protocols.scalars import ScalarStore


def is_single_value(stats: ScalarStats) -> bool:
    """Whether a series is a single value and not a curve."""
    return stats.count == 1 and stats.min_iter == SINGLE_VALUE_ITERATION


async def single_values(store: ScalarStore, series: SeriesQuery) -> list[dict[str, Any]]:
    """The single values of the series, `{metric, variant, value, timestamp}` each, sorted by metric and variant."""
    before = ScalarPosition(SINGLE_VALUE_ITERATION - 1, LAST_NAME, LAST_NAME)
    points = await store.scalar_points(series, PageQuery(1, before, whole=True, until=SINGLE_VALUE_ITERATION))
    if not len(points.iters) or points.iters[0] != SINGLE_VALUE_ITERATION:
        return []
    return await off_loop(len(points.iters), lambda: _listed(points))


def _listed(points: ScalarPoints) -> list[dict[str, Any]]:
    rows = zip(points.series.tolist(), points.values.tolist(), points.timestamps.tolist(), strict=True)
    names = points.names
    return [
        {"metric": names[series][0], "variant": names[series][1], "value": value, "timestamp": timestamp}
        for series, value, timestamp in rows
    ]
