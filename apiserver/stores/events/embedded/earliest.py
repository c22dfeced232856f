"""Finds the points with the least timestamps. They are stored by iteration, so chunks have to be searched.

The stats of each chunk have its least and greatest timestamp: `first_points.py` says which chunks have to be read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from apiserver.events.model import Int64Array
from apiserver.stores.events.columns.first_points import FirstPoints
from apiserver.stores.events.columns.points import Points
from apiserver.stores.events.embedded.series import Series
from apiserver.stores.events.embedded.unsettled import in_parts


def earliest(series: Sequence[Series], after: int | None, limit: int) -> tuple[Points, Int64Array]:
    """The first `limit` points beyond a timestamp and all that share the last one's; and the number of their series.

    They are in (timestamp, iteration, series) order.
    """
    found = FirstPoints(limit, after)
    for which in in_parts(series):
        for number in which.tolist():
            found.add(number, series[number].points(series[number].settled_end))
        found.cut()
    chunks = _chunks(series, found.begin)
    read = 0
    while read < (stop := found.stop(chunks["least"], chunks["count"], read)):
        for number, first, end in chunks[["series", "first", "last"]][read:stop].tolist():
            found.add(number, series[number].settled_points(first, end))
        found.cut()
        read = stop
    return found.page()


_CHUNK = np.dtype([(name, np.int64) for name in ("least", "count", "series", "first", "last")])


def _chunks(series: Sequence[Series], begin: int) -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """A row for each settled chunk that has a timestamp from `begin` on, sorted by the least timestamp."""
    parts = []
    for number, one in enumerate(series):
        stats = one.settled_stats()
        stats = stats[stats["last_time"] >= begin]
        rows = np.empty(len(stats), _CHUNK)
        rows["series"] = number
        for name, column in (("least", "first_time"), ("count", "count"), ("first", "min_iter"), ("last", "max_iter")):
            rows[name] = stats[column]
        parts.append(rows)
    chunks = np.concatenate(parts) if parts else np.empty(0, _CHUNK)
    return chunks[np.argsort(chunks["least"], kind="stable")]
