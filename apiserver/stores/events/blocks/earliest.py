"""Finds the points with the least timestamps. They are in blocks by iteration, so blocks have to be searched.

Of chunks that are alone, the least and the greatest timestamp are known. Other stretches are read first, as these are
few and new. `first_points.py` says which chunks have to be read then.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from apiserver.common.off_loop import off_loop
from apiserver.events.model import ScalarPoints
from apiserver.stores.events.blocks.loading import Loader, times_of
from apiserver.stores.events.blocks.stretches import Numbered, OfSeries, numbered
from apiserver.stores.events.codec.first_points import FirstPoints
from apiserver.stores.events.codec.points import Points, Workers, scalar_points


async def earliest(loader: Loader, series: OfSeries, limit: int, after: int | None) -> ScalarPoints:
    """The first `limit` points beyond a timestamp, and all others that share the last one's timestamp."""
    first, workers, stretches = FirstPoints(limit, after), Workers(), numbered(series.values())
    spans = await loader.spans(one for _, one in stretches)

    def add(part: Iterable[tuple[int, Points]]) -> None:
        for number, points in part:
            first.add(number, points)
        first.cut()

    await loader.read([one for one in stretches if one.stretch.chunk is None], add, workers)
    timed = [(times_of(spans[one.chunk.id]), number, one) for number, one in stretches if one.chunk is not None]
    timed = sorted((one for one in timed if one[0].greatest >= first.begin), key=lambda one: one[0].least)
    least = np.array([times.least for times, *_ in timed], np.int64)
    counts = np.array([one.size for *_, one in timed], np.int64)
    start = 0
    while start < (stop := first.stop(least, counts, start)):
        await loader.read([Numbered(number, one) for _, number, one in timed[start:stop]], add, workers)
        start = stop
    points, numbers = await off_loop(limit, first.page)
    return scalar_points(points, numbers.astype(np.int32), [*series], workers.names)
