"""Which points go when series are thinned (`stores/events/codec/thinning.py`), of the series that have too many.

What is read of a series gives a checksum. The store thins the series only if its points still have it: so nothing goes
that was not read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from apiserver.events.model import Int64Array, selection_of
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.codec.points import WholePoints, take
from apiserver.stores.events.parts import in_parts
from apiserver.stores.events.thinned import Thinned, long_series, read


async def ends_of_thinning(
    store: EventStore, series: SeriesQuery, points: int, checksums: dict[Name, int], at_once: int
) -> tuple[int, int, int]:
    """How many points go when series are thinned, and the times of the oldest and the newest. Points are read once."""
    events, oldest, newest = 0, 2**63 - 1, -(2**63)
    async for some in _thinned(store, series, points, checksums, at_once):
        for one in some.values():
            events += one.gone
            oldest, newest = min(oldest, one.oldest), max(newest, one.newest)
    return events, oldest, newest


async def points_that_go(
    store: EventStore, series: SeriesQuery, points: int, checksums: dict[Name, int], at_once: int
) -> AsyncGenerator[list[WholePoints], None]:
    """The points that do not stay when series are thinned. They are read twice: what stays is known at the end."""
    async for some in _thinned(store, series, points, checksums, at_once):
        stay = {name: one.kept.points.iters for name, one in some.items()}
        async for part in store.whole_points(replace(series, selection=selection_of(some))):
            if gone := await asyncio.to_thread(_without, part, stay):
                yield gone


async def _thinned(
    store: EventStore, series: SeriesQuery, points: int, checksums: dict[Name, int], at_once: int
) -> AsyncGenerator[dict[Name, Thinned], None]:
    """The series with more points, some at a time, once all their points were read; `checksums` gets theirs."""
    for some in in_parts(await long_series(store, series, points), lambda one: one.count, at_once):
        found = await read(store, series.owner, some, points)
        checksums.update({name: one.checksum for name, one in found.items()})
        if found:
            yield found


def _without(some: Sequence[WholePoints], stay: Mapping[Name, Int64Array]) -> list[WholePoints]:
    """The points that do not stay; a series without any is left out."""
    goes = [~np.isin(one.points.iters, stay.get(one.series, one.points.iters)) for one in some]
    return [one._replace(points=take(one.points, which)) for one, which in zip(some, goes, strict=True) if which.any()]
