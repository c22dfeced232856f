"""The last values of scalar series: numbers for a table rather than curves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from apiserver.common.off_loop import off_loop
from apiserver.events.model import SINGLE_VALUE_ITERATION
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.protocols.scalars import ScalarStore

#: How many of the last values are averaged.
LAST = 100


async def latest_scalars(store: ScalarStore, series: SeriesQuery) -> list[dict[str, Any]]:
    """`[{name, variants: [{name, last_value, last_100_value, last_10_value}]}]`, sorted by metric and variant.

    `last_value` is the value at the greatest iteration, and `last_100_value` the mean of the finite ones among
    the last 100. `last_10_value` is an old field that has always had the last value.
    """
    values = await store.last_values(series, LAST)
    return await off_loop(len(values), lambda: _listed(values))


def _listed(values: dict[tuple[str, str], list[float]]) -> list[dict[str, Any]]:
    metrics: dict[str, list[dict[str, Any]]] = {}
    for metric, variant in sorted(values):
        of_series = values[metric, variant]
        metrics.setdefault(metric, []).append(
            {
                "name": variant,
                "last_value": of_series[-1],
                "last_100_value": finite_mean(of_series),
                "last_10_value": of_series[-1],
            }
        )
    return [{"name": metric, "variants": variants} for metric, variants in metrics.items()]


def finite_mean(values: Sequence[float]) -> float | None:
    """The mean of the finite values; None when there are none."""
    finite = [value for value in values if math.isfinite(value)]
    # Each value is divided first, so that the sum of great values stays finite.
    return math.fsum(value / len(finite) for value in finite) if finite else None


async def last_iteration(store: ScalarStore, series: SeriesQuery) -> tuple[int | None, int | None]:
    """The greatest iteration that has a scalar, and when the server got the newest of its scalars (epoch ms).

    Both are None if there are no scalars, or only single values.
    """
    points = await store.scalar_points(series, PageQuery(1, descending=True, whole=True))
    if not len(points.iters) or points.iters[0] == SINGLE_VALUE_ITERATION:
        return None, None
    return int(points.iters[0]), int(points.received.max())
