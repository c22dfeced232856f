"""Reads vectors, plots and debug images: pages, the newest of each series, and distinct iterations."""

from __future__ import annotations

from base64 import b64decode
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from apiserver.events.model import JsonObject, Sample, SamplePosition, SampleSeries
from apiserver.events.queries import PageQuery, Range, SeriesQuery
from apiserver.stores.events.base import may_go_on, page_of
from apiserver.stores.events.elasticsearch import names, paging
from apiserver.stores.events.elasticsearch.aggregating import SeriesAggs, aggregate, exact, extent
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.queries import any_of, between, inside, of, of_series, ordered
from apiserver.stores.events.elasticsearch.series import MOST_BUCKETS, Series, SeriesIndex
from apiserver.stores.events.elasticsearch.writing import LARGE_SAMPLE, unpacked

_BY = ("iter", "metric", "variant", "key")
_NEWEST_FIRST = [{"metric": "asc"}, {"variant": "asc"}, {"iter": "desc"}, {"key": "asc"}]
#: Samples of one answer.
WINDOW = paging.AN_ANSWER // LARGE_SAMPLE
#: Parts of one query. Nodes allow a thousand clauses or more.
_PARTS = 300


class Samples:
    """The samples of some series."""

    def __init__(self, cluster: Cluster, known: SeriesIndex, asked: SeriesQuery) -> None:
        self._cluster = cluster
        self._known = known
        self._asked = asked
        self._index = names.index_of(cluster.prefix, asked)
        self._routing = names.owner_key(asked.owner)

    async def series(self) -> list[SampleSeries]:
        """The number of samples and the ends of each series, sorted."""
        aggs = {**extent("iter"), **extent("timestamp")}
        found = await self._aggregated(await self._known.find(self._asked), aggs)
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

    async def page(self, wanted: PageQuery[SamplePosition], iterations: Range) -> list[Sample]:
        """A page, as `EventStore.samples` describes it."""
        query = of(self._asked, *inside("iter", iterations))
        return await self._read(query, ordered(_BY, descending=wanted.descending), wanted.after, wanted.limit)

    async def latest(self, iterations: int, after: SamplePosition | None) -> list[Sample]:
        """A page of the samples of each series' newest iterations."""
        most = min(iterations, MOST_BUCKETS)
        newest = {"iters": {"terms": {"field": "iter", "size": most, "order": {"_key": "desc"}}}}
        series = await self._known.find(self._asked)
        if after is not None:
            series = [one for one in series if (one.metric, one.variant) >= (after.metric, after.variant)]
        least: list[tuple[Series, int | None]] = [
            (one, min(bucket["key"] for bucket in of["iters"]["buckets"]) if of["doc_count"] > iterations else None)
            for one, of in await self._aggregated(series, newest, most)
        ]
        behind = None if after is None else (after.metric, after.variant, after.iter, after.key)
        samples: list[Sample] = []
        for query in _from_least(least):
            samples = page_of([*samples, *await self._read(query, _NEWEST_FIRST, behind, paging.ALL)])
            if may_go_on(samples, paging.ALL):
                break
        return samples

    async def iterations(self, wanted: PageQuery[int]) -> list[int]:
        """A page of the distinct iterations."""
        buckets = self._cluster.composite(
            self._index,
            of(self._asked),
            ["iter"],
            routing=self._routing,
            after=None if wanted.after is None else {"iter": wanted.after},
            descending=wanted.descending,
            size=min(wanted.limit, MOST_BUCKETS),
        )
        found: list[int] = []
        async for bucket in buckets:
            found.append(bucket["key"]["iter"])
            if len(found) == wanted.limit:
                break
        return found

    async def _aggregated(
        self, series: Sequence[Series], aggs: JsonObject, buckets: int = 1
    ) -> list[tuple[Series, JsonObject]]:
        wanted = [SeriesAggs(one, aggs, buckets) for one in series]
        found = await aggregate(self._cluster, self._index, self._routing, wanted)
        return [(one, found[one.key]) for one in series if one.key in found]

    async def _read(
        self, query: JsonObject, sort: Sequence[JsonObject], after: Sequence[object] | None, limit: int
    ) -> list[Sample]:
        """A page of samples in the order of `sort`, which has iter, metric, variant and key in any order."""
        hits = paging.texts(
            self._cluster,
            self._index,
            self._routing,
            query,
            sort,
            fields=["timestamp"],
            stored=["document"],
            after=after,
            limit=limit,
            window=WINDOW,
        )
        by = [field for one in sort for field in one]
        return await paging.page(hits, lambda hit: self._sample(dict(zip(by, hit["sort"], strict=True)), hit["fields"]))

    def _sample(self, position: JsonObject, fields: JsonObject) -> Sample:
        document = unpacked(b64decode(fields["document"][0]))
        return Sample(
            owner=self._asked.owner,
            type=self._asked.type,
            timestamp=fields["timestamp"][0],
            document=document,
            **position,
        )


def _from_least(series: Iterable[tuple[Series, int | None]]) -> Iterator[JsonObject]:
    """Queries for each series' samples from an iteration on (None: all), for some series at a time, in their order."""
    keys: defaultdict[int | None, list[str]] = defaultdict(list)
    for one, least in series:
        if least not in keys and len(keys) == _PARTS:
            yield _any_of(keys)
            keys.clear()
        keys[least].append(one.key)
    if keys:
        yield _any_of(keys)


def _any_of(keys: Mapping[int | None, Sequence[str]]) -> JsonObject:
    return any_of([of_series(of, *between("iter", least, None)) for least, of in keys.items()])
