"""Reads vectors, plots and debug images: pages, the newest of each series, and distinct iterations."""

from __future__ import annotations

from base64 import b64decode
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence

from apiserver.events.model import JsonObject, Sample, SamplePosition, SampleSeries
from apiserver.events.queries import PageQuery, Range, SeriesQuery
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.elasticsearch import names, paging
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.queries import BARE, any_of, between, inside, of, of_series, ordered
from apiserver.stores.events.elasticsearch.writing import unpacked
from apiserver.stores.events.parts import in_parts
from apiserver.stores.events.sizes import may_go_on, page_of

#: Nodes refuse to make more than 65,536 buckets.
MOST_BUCKETS = 60_000
#: Aggregations count in doubles, which hold whole numbers exactly up to here.
_EXACT = 2**53
#: Series of one answer, and aggregations over each of them: the ends of its samples.
_SERIES = 10_000
_ENDS = {"min_iter": ("min", "iter"), "max_iter": ("max", "iter"), "max_timestamp": ("max", "timestamp")}
_BY = ("iter", "metric", "variant", "key")
_NEWEST_FIRST = [{"metric": "asc"}, {"variant": "asc"}, {"iter": "desc"}, {"key": "asc"}]
#: Parts of one query. Nodes allow a thousand clauses or more.
_PARTS = 300


class Samples:
    """The samples of some series."""

    def __init__(self, cluster: Cluster, asked: SeriesQuery) -> None:
        self._cluster = cluster
        self._asked = asked
        self._index = names.index_of(cluster.prefix, asked)
        self._routing = names.owner_key(asked.owner)

    async def count(self) -> int:
        """The number of samples, exactly."""
        body = {"size": 0, "track_total_hits": True, "query": of(self._asked)}
        total: int = (await self._cluster.search(self._index, body, routing=self._routing))["hits"]["total"]["value"]
        return total

    async def counts(self) -> dict[Name, int]:
        """The number of samples of each series, sorted."""
        return {name: bucket["doc_count"] async for name, bucket in self._by_series({})}

    async def series(self) -> list[SampleSeries]:
        """The number of samples and the ends of each series, sorted."""
        aggs = {end: {extreme: {"field": field}} for end, (extreme, field) in _ENDS.items()}
        return [
            SampleSeries(*name, bucket["doc_count"], *[await self._end(name, bucket, end) for end in _ENDS])
            async for name, bucket in self._by_series(aggs)
        ]

    async def _by_series(self, aggs: JsonObject) -> AsyncIterator[tuple[Name, JsonObject]]:
        """Each series that has samples, in their order, and a bucket of these with the aggregations."""
        by, routing = ("metric", "variant"), self._routing
        walk = self._cluster.composite(self._index, of(self._asked), by, routing=routing, size=_SERIES, aggs=aggs)
        async for bucket in walk:
            yield (bucket["key"]["metric"], bucket["key"]["variant"]), bucket

    async def _end(self, name: Name, bucket: JsonObject, end: str) -> int:
        """One of a series' ends, which its bucket has, perhaps rounded."""
        near = float(bucket[end]["value"])
        if abs(near) < _EXACT:
            return int(near)
        extreme, field = _ENDS[end]
        key, sort = names.series_of(self._routing, *name), ordered([field], descending=extreme == "max")
        body = {**BARE, "size": 1, "query": of_series([key]), "sort": sort}
        hits = (await self._cluster.search(self._index, body, routing=self._routing))["hits"]["hits"]
        return int(hits[0]["sort"][0]) if hits else min(int(near), 2**63 - 1)  # none: they were deleted meanwhile

    async def page(self, wanted: PageQuery[SamplePosition], iterations: Range) -> list[Sample]:
        """A page, as `SampleStore.samples` describes it."""
        query = of(self._asked, *inside("iter", iterations))
        return await self._read(query, ordered(_BY, descending=wanted.descending), wanted.after, wanted.limit)

    async def latest(self, iterations: int, after: SamplePosition | None) -> list[Sample]:
        """A page of the samples of each series' newest iterations."""
        first = ("", "") if after is None else (after.metric, after.variant)
        series = {name: count for name, count in (await self.counts()).items() if name >= first}
        counts = {names.series_of(self._routing, *name): count for name, count in series.items()}
        least = await self._least({key: count for key, count in counts.items() if count > iterations}, iterations)
        behind = None if after is None else (after.metric, after.variant, after.iter, after.key)
        samples: list[Sample] = []
        for query in _from_least((key, least.get(key)) for key in counts):
            samples = page_of([*samples, *await self._read(query, _NEWEST_FIRST, behind, paging.ALL)])
            if may_go_on(samples, paging.ALL):
                break
        return samples

    async def _least(self, counts: Mapping[str, int], iterations: int) -> dict[str, int]:
        """The last one of the newest iterations of each of these series, by keys.

        Series with few samples share searches, as each search has a fixed cost.
        """
        most, bounds = min(iterations, MOST_BUCKETS), self._cluster.bounds
        newest = {"iters": {"terms": {"field": "iter", "size": most, "order": {"_key": "desc"}}}}
        searches = []
        for keys in in_parts(counts, lambda key: max(counts[key], most), bounds.samples_a_search):
            by_series = {"series": {"terms": {"field": "series", "size": len(keys)}, "aggs": newest}}
            body = {"size": 0, "track_total_hits": False, "query": of_series(keys), "aggs": by_series}
            searches.append((len(keys) * most, body))
        least: dict[str, int] = {}
        for part in in_parts(searches, lambda search: search[0], bounds.iterations_an_answer):
            bodies = [body for _, body in part]
            for answer in await self._cluster.searches(self._index, bodies, routing=self._routing):
                for bucket in answer.get("aggregations", {}).get("series", {}).get("buckets", ()):
                    least[bucket["key"]] = min(one["key"] for one in bucket["iters"]["buckets"])
        return least

    async def iterations(self, page: PageQuery[int]) -> list[int]:
        """A page of the distinct iterations."""
        buckets = self._cluster.composite(
            self._index,
            of(self._asked),
            ["iter"],
            routing=self._routing,
            after=None if page.after is None else {"iter": page.after},
            descending=page.descending,
            size=min(page.limit, MOST_BUCKETS),
        )
        iterations: list[int] = []
        async for bucket in buckets:
            iterations.append(bucket["key"]["iter"])
            if len(iterations) == page.limit:
                break
        return iterations

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
            window=self._cluster.bounds.samples_an_answer,
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


def _from_least(series: Iterable[tuple[str, int | None]]) -> Iterator[JsonObject]:
    """Queries for each series' samples from an iteration on (None: all), for some series at a time, in their order."""
    keys: defaultdict[int | None, list[str]] = defaultdict(list)
    for key, least in series:
        if least not in keys and len(keys) == _PARTS:
            yield _any_of(keys)
            keys.clear()
        keys[least].append(key)
    if keys:
        yield _any_of(keys)


def _any_of(keys: Mapping[int | None, Sequence[str]]) -> JsonObject:
    return any_of([of_series(of, *between("iter", least, None)) for least, of in keys.items()])
