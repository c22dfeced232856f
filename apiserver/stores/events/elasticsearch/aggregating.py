"""Aggregations over many series of samples in one request.

Long series have a search each, so that nodes work on several at once. Short series share searches, as each search has a
fixed cost. For example, of series with 1,000, 1,000 and 50,000 events, the first two share a search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from apiserver.events.model import JsonObject
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.queries import BARE, of_series, ordered
from apiserver.stores.events.elasticsearch.series import Series
from apiserver.stores.events.parts import in_parts

#: Aggregations count in doubles, which hold whole numbers exactly up to here.
EXACT = 2**53

#: Series of up to so many events, and buckets, share searches.
_SHORT = 2_000
#: Events, and buckets, of a shared search.
_TOGETHER = 20_000
#: Buckets of one answer. Reading a larger one would keep all other callers waiting.
BUCKETS_AN_ANSWER = 100_000


@dataclass(slots=True, frozen=True)
class SeriesAggs:
    """Aggregations over the events of one series, which make up to `buckets` buckets.

    Series share a search only if their `aggs` are the same object.
    """

    series: Series
    aggs: JsonObject
    buckets: int = 1

    @property
    def short(self) -> bool:
        """Whether the series may share a search."""
        return max(self.series.count, self.buckets) <= _SHORT


def extent(field: str) -> JsonObject:
    """Aggregations: the least and the greatest value of a field."""
    return {f"min_{field}": {"min": {"field": field}}, f"max_{field}": {"max": {"field": field}}}


async def exact(cluster: Cluster, index: str, routing: str, series: Series, found: JsonObject, name: str) -> int:
    """A series' least or greatest value of a field. The aggregation `name` of `extent` found it, perhaps rounded."""
    near = float(found[name]["value"])
    if abs(near) < EXACT:
        return int(near)
    end, _, field = name.partition("_")
    body = {
        **BARE,
        "size": 1,
        "query": of_series([series.key]),
        "sort": ordered([field], descending=end == "max"),
    }
    hits = (await cluster.search(index, body, routing=routing))["hits"]["hits"]
    return int(hits[0]["sort"][0]) if hits else min(int(near), 2**63 - 1)  # none: they were deleted meanwhile


async def aggregate(cluster: Cluster, index: str, routing: str, wanted: Iterable[SeriesAggs]) -> dict[str, JsonObject]:
    """By key, the aggregations over each series' events, and their `doc_count`; series without events are left out."""
    found: dict[str, JsonObject] = {}
    for parts in in_parts(_parts(wanted), lambda part: sum(one.buckets for one in part), BUCKETS_AN_ANSWER):
        answers = await cluster.searches(index, [_body(part) for part in parts], routing=routing)
        for part, answer in zip(parts, answers, strict=True):
            found |= _by_key(part, answer)
    return found


def _parts(wanted: Iterable[SeriesAggs]) -> Iterator[list[SeriesAggs]]:
    """Groups that share a search: short series with the same aggregations."""
    short: list[SeriesAggs] = []
    for one in wanted:
        if one.short:
            short.append(one)
        else:
            yield [one]
    for _, group in groupby(sorted(short, key=_aggs), key=_aggs):
        yield from in_parts(group, lambda one: max(one.series.count, one.buckets), _TOGETHER)


def _aggs(wanted: SeriesAggs) -> int:
    return id(wanted.aggs)


def _body(part: Sequence[SeriesAggs]) -> JsonObject:
    keys, aggs = [one.series.key for one in part], part[0].aggs
    query = of_series(keys)
    if len(part) == 1:
        return {"size": 0, "track_total_hits": True, "query": query, "aggs": aggs}
    by_series = {"terms": {"field": "series", "size": len(keys)}, "aggs": aggs}
    return {"size": 0, "track_total_hits": False, "query": query, "aggs": {"series": by_series}}


def _by_key(part: Sequence[SeriesAggs], answer: JsonObject) -> dict[str, JsonObject]:
    found: JsonObject = answer.get("aggregations", {})
    if len(part) > 1:
        return {bucket["key"]: bucket for bucket in found["series"]["buckets"]} if found else {}
    count = answer["hits"]["total"]["value"]
    return {part[0].series.key: {"doc_count": count, **found}} if count else {}
