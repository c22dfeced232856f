"""Aggregations over many series in one request.

Long series have a search each, so that nodes work on several at once. Short series share searches, as each search has a
fixed cost. For example, of series with 1,000, 1,000 and 50,000 events, the first two share a search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from apiserver.events.model import JsonObject
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.parts import in_parts
from apiserver.stores.events.elasticsearch.queries import of_series
from apiserver.stores.events.elasticsearch.series import Series

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
        return self.series.count is not None and max(self.series.count, self.buckets) <= _SHORT


async def aggregate(
    cluster: Cluster, index: str, routing: str, wanted: Iterable[SeriesAggs], *conditions: JsonObject
) -> dict[str, JsonObject]:
    """By key, the aggregations over each series' events that meet all conditions, and their `doc_count`.

    Series without such an event are not in the result.
    """
    found: dict[str, JsonObject] = {}
    for parts in in_parts(_parts(wanted), lambda part: sum(one.buckets for one in part), BUCKETS_AN_ANSWER):
        answers = await cluster.searches(index, [_body(part, conditions) for part in parts], routing=routing)
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
        yield from in_parts(group, lambda one: max(one.series.count or 0, one.buckets), _TOGETHER)


def _aggs(wanted: SeriesAggs) -> int:
    return id(wanted.aggs)


def _body(part: Sequence[SeriesAggs], conditions: Sequence[JsonObject]) -> JsonObject:
    keys, aggs = [one.series.key for one in part], part[0].aggs
    query = of_series(keys, *conditions)
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
