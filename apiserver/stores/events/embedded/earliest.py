"""Finds the points with the least timestamps. They are stored by iteration, so chunks have to be searched.

The stats of each chunk have its least and greatest timestamp: `first_points.py` says which chunks have to be read.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from apiserver.events.model import ScalarPoints
from apiserver.stores.events.codec.first_points import FirstPoints
from apiserver.stores.events.codec.points import scalar_points
from apiserver.stores.events.embedded.series import Series
from apiserver.stores.events.embedded.unsettled import in_parts


def earliest(series: Sequence[Series], limit: int, after: int | None, worker_names: Sequence[str]) -> ScalarPoints:
    """The first `limit` points beyond a timestamp, and all others that share the last one's timestamp."""
    first_points = FirstPoints(limit, after)
    for which in in_parts(series):
        for number in which.tolist():
            first_points.add(number, series[number].points(series[number].settled_end))
        first_points.cut()
    chunks = _chunks(series, first_points.begin)
    read = 0
    while read < (stop := first_points.stop(chunks["least"], chunks["count"], read)):
        for number, first, end in chunks[["series", "first", "last"]][read:stop].tolist():
            first_points.add(number, series[number].settled_points(first, end))
        first_points.cut()
        read = stop
    points, numbers = first_points.page()
    return scalar_points(points, numbers.astype(np.int32), [one.name for one in series], worker_names)


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
