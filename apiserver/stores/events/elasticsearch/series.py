"""Finds the series of an owner.

Every event has its series' key, and a key always stands for the same metric and variant. So names are remembered by
key, and only unknown ones are looked up. Only the count of an owner's events by key has to read all of its events.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from apiserver.events.model import JsonObject
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.columns.names import Name
from apiserver.stores.events.elasticsearch import names
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.queries import BARE, of, of_series

#: Nodes refuse to make more than 65,536 buckets.
MOST_BUCKETS = 60_000

_MOST_NAMES = 200_000
#: Up to so many series are looked up one by one.
_FEW = 50


@dataclass(slots=True, frozen=True, order=True)
class Series:
    """A series of an owner."""

    metric: str
    variant: str
    key: str
    count: int
    """How many events it has."""


class SeriesIndex:
    """The series of owners, by type."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._names: dict[str, Name] = {}

    async def find(self, asked: SeriesQuery) -> list[Series]:
        """The series, sorted by metric and variant."""
        counts = await self._counts(asked)
        named = await self._named(asked, counts)
        return sorted(Series(*named[key], key, count) for key, count in counts.items() if key in named)

    async def _counts(self, asked: SeriesQuery) -> dict[str, int]:
        index, routing = self._place(asked)
        query = of(asked)
        by_key = {"series": {"terms": {"field": "series", "size": MOST_BUCKETS}}}
        body = {"size": 0, "track_total_hits": False, "query": query, "aggs": by_key}
        found = (await self._cluster.search(index, body, routing=routing)).get("aggregations")
        if found is None:
            return {}
        if not found["series"]["sum_other_doc_count"]:
            return {bucket["key"]: bucket["doc_count"] for bucket in found["series"]["buckets"]}
        buckets = self._cluster.composite(index, query, ["series"], routing=routing)
        return {bucket["key"]["series"]: bucket["doc_count"] async for bucket in buckets}

    def _place(self, asked: SeriesQuery) -> tuple[str, str]:
        """The index and the routing of the series."""
        return names.index_of(self._cluster.prefix, asked), names.owner_key(asked.owner)

    async def _named(self, asked: SeriesQuery, keys: Collection[str]) -> dict[str, Name]:
        """The names of series by key, without those that are gone meanwhile."""
        named = {key: self._names[key] for key in keys if key in self._names}
        unknown = [key for key in keys if key not in named]
        if unknown:
            found = await (self._one_by_one if len(unknown) <= _FEW else self._all)(asked, unknown)
            if len(self._names) + len(found) > _MOST_NAMES:
                self._names.clear()
            self._names |= found
            named |= found
        return named

    async def _one_by_one(self, asked: SeriesQuery, keys: Collection[str]) -> dict[str, Name]:
        bodies: list[JsonObject] = [
            {**BARE, "size": 1, "query": of_series([key]), "docvalue_fields": ["metric", "variant"]} for key in keys
        ]
        index, routing = self._place(asked)
        answers = await self._cluster.searches(index, bodies, routing=routing)
        found = [(key, hit["fields"]) for key, one in zip(keys, answers, strict=True) for hit in one["hits"]["hits"]]
        return {key: (fields["metric"][0], fields["variant"][0]) for key, fields in found}

    async def _all(self, asked: SeriesQuery, keys: Collection[str]) -> dict[str, Name]:
        index, routing = self._place(asked)
        query = of(SeriesQuery(asked.owner, asked.type))
        buckets = self._cluster.composite(index, query, ("metric", "variant"), routing=routing)
        named = [(bucket["key"]["metric"], bucket["key"]["variant"]) async for bucket in buckets]
        return {names.series_of(routing, *name): name for name in named}
