"""Reads the same scalar series of many owners, each by itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

from apiserver import answers
from apiserver.events.aggregates import Buckets, CurvesInBuckets, Neighbours
from apiserver.events.queries import BucketQuery, CommonBuckets, CurvesQuery
from apiserver.off_loop import together
from apiserver.stores.events.elasticsearch import buckets as bucketing
from apiserver.stores.events.elasticsearch.buckets import Request
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.series import SeriesIndex

#: Owners that are read at the same time.
_AT_ONCE = 16

Found = TypeVar("Found")


async def ends(cluster: Cluster, known: SeriesIndex, asked: CurvesQuery) -> tuple[int, int] | None:
    """The least and the greatest x of all curves together."""
    buckets = BucketQuery(asked.axis, lambda *_: 1)
    each = _each(asked, buckets, lambda request: bucketing.ends(cluster, known, request))
    found = [one async for _, of_owner in each for one in of_owner]
    return (min(least for least, _ in found), max(greatest for _, greatest in found)) if found else None


async def in_buckets(
    cluster: Cluster, known: SeriesIndex, asked: CurvesQuery, common: CommonBuckets
) -> CurvesInBuckets:
    """All curves in the buckets, as `EventStore.curve_buckets` describes them."""

    async def read(request: Request) -> list[Buckets]:
        with answers.reading():
            return await bucketing.buckets(cluster, known, request)

    with answers.reading():
        answers.will_read(8 * (len(asked.owners) + 2) * common.count)
        found = CurvesInBuckets.empty(len(asked.owners), common.count)
        async for row, of_owner in _each(asked, common.of(asked), read):
            for one in of_owner:
                found.put(row, common.numbers(one.x), one.values)
    return found


async def neighbours(
    cluster: Cluster, known: SeriesIndex, asked: CurvesQuery, common: CommonBuckets, *, before: bool
) -> Neighbours:
    """The nearest buckets outside, as `EventStore.curve_neighbours` describes them."""

    async def read(request: Request) -> list[tuple[float, float]]:
        with answers.reading():
            return await bucketing.nearest(cluster, known, request, common, before=before)

    with answers.reading():
        answers.will_read(16 * len(asked.owners))
        found = Neighbours.empty(len(asked.owners))
        async for row, of_owner in _each(asked, common.of(asked), read):
            for one in of_owner:
                found.numbers[row], found.means[row] = one
    return found


async def _each(
    asked: CurvesQuery, buckets: BucketQuery, read: Callable[[Request], Coroutine[Any, Any, list[Found]]]
) -> AsyncIterator[tuple[int, list[Found]]]:
    """What `read` finds of each owner, by the owner's place."""
    requests = [Request(asked.of(owner), buckets) for owner in asked.owners]
    for start in range(0, len(requests), _AT_ONCE):
        found = await together(*map(read, requests[start : start + _AT_ONCE]))
        for place, of_owner in enumerate(found, start):
            yield place, of_owner
