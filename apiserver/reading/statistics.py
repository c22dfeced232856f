"""Facts of scalar series that stores tell without reading points: where a series is best, how much it varies.

For example, a series with the values 4, 2, NaN, 3 at iterations 0, 10, 20 and 30:

    count 4, of which 1 is not finite, first at 20
    first 4 at 0, last 3 at 30; they are the earliest and the latest by time
    min 2 at 10, which is 20 iterations ago; max 4 at 0, 30 iterations ago
    mean 3, std 0.82: sqrt((1 + 1 + 0) / 3)
"""

from __future__ import annotations

import math
from typing import Any

from apiserver.common import answers
from apiserver.common.off_loop import off_loop
from apiserver.events.model import ScalarStats
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.protocols.scalars import ScalarStore

#: Bytes of memory that the statistics of a series take, about.
_BYTES = 2000

#: {metric: {variant: statistics}}
Statistics = dict[str, dict[str, dict[str, Any]]]


async def statistics(store: ScalarStore, series: SeriesQuery) -> tuple[Statistics, int]:
    """The statistics of each series, and how many series there are."""
    found = await store.scalar_stats(series, spread=True)
    answers.hold(len(found) * _BYTES)
    return await off_loop(len(found), lambda: _by_name(found)), len(found)


def _by_name(found: list[ScalarStats]) -> Statistics:
    answer: Statistics = {}
    for stats in found:
        answer.setdefault(stats.metric, {})[stats.variant] = _statistics(stats)
    return answer


def _statistics(stats: ScalarStats) -> dict[str, Any]:
    finite, deviations = stats.finite_count, stats.deviations or 0.0
    return {
        "count": stats.count,
        "not_finite": stats.count - finite,
        "first_not_finite_iter": stats.first_not_finite_iter,
        "first": {"iter": stats.first_iter, "timestamp": stats.min_timestamp, "value": stats.first_value},
        "last": {"iter": stats.last_iter, "timestamp": stats.max_timestamp, "value": stats.last_value},
        "min": _extreme(stats, stats.min_value, stats.min_value_iter),
        "max": _extreme(stats, stats.max_value, stats.max_value_iter),
        "mean": stats.sum / finite if finite else None,
        "std": math.sqrt(deviations / finite) if finite else None,
    }


def _extreme(stats: ScalarStats, value: float | None, iter: int | None) -> dict[str, Any] | None:
    """The least or the greatest value, and how many iterations the series went on after it."""
    return None if iter is None else {"iter": iter, "value": value, "iters_since": stats.max_iter - iter}
