"""Vectors, plots and debug images: pages, the newest of each series, and walks over iterations."""

from __future__ import annotations

from base64 import b64decode
from collections import defaultdict
from collections.abc import Sequence

from apiserver.events.model import EventType, JsonObject, Owner, Sample, SamplePosition, SampleSeries, Selection
from apiserver.stores.events.base import page_of
from apiserver.stores.events.elasticsearch import names, paging
from apiserver.stores.events.elasticsearch.aggregating import Wanted, aggregate
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.queries import any_of, between, of_owner, of_series, ordered
from apiserver.stores.events.elasticsearch.series import MOST_BUCKETS, Series, SeriesIndex
from apiserver.stores.events.elasticsearch.stats import exact, extent
from apiserver.stores.events.elasticsearch.writing import unpacked

_BY = ("iter", "metric", "variant", "key")
#: Documents of one answer: each may be large.
_WINDOW = 200
#: Parts of one query: nodes allow for a thousand clauses at least.
_PARTS = 300


class Samples:
    """The selected samples of one type of an owner."""

    def __init__(
        self, cluster: Cluster, known: SeriesIndex, owner: Owner, type: EventType, selection: Selection
    ) -> None:
        self._cluster = cluster
        self._known = known
        self._owner = owner
        self._type = type
        self._selection = selection
        self._index = names.index(cluster.prefix, type, owner.company)
        self._routing = names.owner_key(owner)

    async def series(self) -> list[SampleSeries]:
        """What is known of each series, sorted."""
        aggs = {**extent("iter"), **extent("timestamp")}
        found = await self._aggregated(aggs)
        ends = ("min_iter", "max_iter", "max_timestamp")
        return [
            SampleSeries(
                one.metric,
                one.variant,
                of["doc_count"],
                *[await exact(self._cluster, self._index, self._routing, one, of, name) for name in ends],
            )
            for one, of in found
        ]

    async def page(
        self,
        after: SamplePosition | None,
        *,
        descending: bool,
        limit: int,
        min_iter: int | None,
        max_iter: int | None,
    ) -> list[Sample]:
        """A page, as the protocol says."""
        query = of_owner(self._owner, self._selection, *between("iter", min_iter, max_iter))
        return page_of(await self._read(query, ordered(_BY, descending=descending), after, limit))

    async def latest(self, iterations: int, after: SamplePosition | None) -> list[Sample]:
        """A page of the samples of each series' newest iterations."""
        most = min(iterations, MOST_BUCKETS)
        newest = {"iters": {"terms": {"field": "iter", "size": most, "order": {"_key": "desc"}}}}
        keys: defaultdict[int | None, list[str]] = defaultdict(list)
        for one, of in await self._aggregated(newest, most):
            least = min(bucket["key"] for bucket in of["iters"]["buckets"]) if of["doc_count"] > iterations else None
            keys[least].append(one.key)
        parts = [of_series(of, *between("iter", least, None)) for least, of in keys.items()]
        samples: list[Sample] = []
        for start in range(0, len(parts), _PARTS):
            query = any_of(parts[start : start + _PARTS])
            samples += await self._read(query, ordered(_BY), None, paging.ALL)
        found = sorted(samples, key=_newest_first)
        return page_of(one for one in found if after is None or _newest_first(one) > _newest_first(after))

    async def iterations(self, beyond: int | None, *, descending: bool, limit: int) -> list[int]:
        """Distinct iterations in walk order, as the protocol says."""
        buckets = self._cluster.composite(
            self._index,
            of_owner(self._owner, self._selection),
            ["iter"],
            routing=self._routing,
            after=None if beyond is None else {"iter": beyond},
            descending=descending,
            size=min(limit, MOST_BUCKETS),
        )
        found: list[int] = []
        async for bucket in buckets:
            found.append(bucket["key"]["iter"])
            if len(found) == limit:
                break
        return found

    async def _aggregated(self, aggs: JsonObject, buckets: int = 1) -> list[tuple[Series, JsonObject]]:
        series = await self._known.find(self._owner, self._type, self._selection)
        wanted = [Wanted(one, aggs, buckets) for one in series]
        found = await aggregate(self._cluster, self._index, self._routing, wanted)
        return [(one, found[one.key]) for one in series if one.key in found]

    async def _read(
        self, query: JsonObject, sort: Sequence[JsonObject], after: Sequence[object] | None, limit: int
    ) -> list[Sample]:
        """`sort` is by iteration, metric, variant and key."""
        hits = await paging.hits_of(
            paging.pages(
                self._cluster,
                self._index,
                self._routing,
                query,
                sort,
                fields=["timestamp"],
                stored=["document"],
                after=after,
                limit=limit,
                window=_WINDOW,
            )
        )
        return [self._sample(*hit["sort"], **hit["fields"]) for hit in hits]

    def _sample(
        self, iter: int, metric: str, variant: str, key: str, *, timestamp: list[int], document: list[str]
    ) -> Sample:
        stored = unpacked(b64decode(document[0]))
        return Sample(self._owner, self._type, metric, variant, iter, key, timestamp[0], stored)


def _newest_first(one: Sample | SamplePosition) -> tuple[str, str, int, str]:
    return (one.metric, one.variant, -one.iter, one.key)
