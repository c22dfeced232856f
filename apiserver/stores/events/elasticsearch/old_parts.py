"""Cuts old documents into parts that fit into a block, by how many there are of which numbers.

The numbers are iterations of points, or timestamps of log lines. A histogram tells how many documents each of its
buckets has. A bucket with too many is looked at again, in narrower buckets. For example, if a part has up to 10 of
1,000,004 documents:

    numbers 0 to 999,999, and 5 documents at 2⁴⁰     a histogram of wide buckets: the first one has 1,000,000 documents
    numbers 0 to 999,999                             a histogram of narrow buckets: up to 10 documents each

Aggregations calculate with floating-point numbers, which are exact up to 2⁵³. So documents with numbers beyond that are
not among those, but listed one by one. There are hardly ever any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from apiserver.events.model import JsonObject
from apiserver.stores.events.base import EVENT_BYTES
from apiserver.stores.events.elasticsearch.bounds import ElasticsearchBounds
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.queries import all_of, between

#: How full a part is if numbers are spread evenly.
_FILLED = 0.8
#: The most buckets of a histogram, about.
_BUCKETS = 10_000
#: Up to here, floating-point numbers are exact.
_EXACT = 2**53


class Part(NamedTuple):
    """Documents with numbers from `first` to `last`: how many, and about how many bytes their events take in memory."""

    first: int
    last: int
    events: int
    size: int

    def filled(self, bounds: ElasticsearchBounds) -> float:
        """How many parts it would fill."""
        return max(self.events / bounds.part_events, self.size / bounds.part_bytes if self.events > 1 else 0)


def near(field: str) -> JsonObject:
    """The documents with numbers that aggregations take exactly."""
    return all_of(*between(field, -_EXACT, _EXACT))


def far(field: str) -> list[JsonObject]:
    """The other documents: those with lower numbers, and those with greater ones."""
    return [*between(field, None, -_EXACT - 1), *between(field, _EXACT + 1, None)]


def measures(field: str) -> JsonObject:
    """What a bucket has to tell for `part`. Points have no field `size`; log lines of old releases have none, too."""
    ends = {"first": {"min": {"field": field}}, "last": {"max": {"field": field}}}
    return {**ends, "size": {"stats": {"field": "size"}}}


def part(bucket: JsonObject) -> Part:
    """The documents of a bucket with these measures. Those without a size are as large as the others."""
    first, last, count, size = (
        int(bucket["first"]["value"]),
        int(bucket["last"]["value"]),
        bucket["doc_count"],
        bucket["size"],
    )
    text = size["sum"] / size["count"] if size["count"] else 0
    return Part(first, last, count, int(count * (EVENT_BYTES + text)))


async def cut(
    cluster: Cluster, index: str, routing: str, field: str, wanted: Sequence[tuple[JsonObject, Part]]
) -> list[list[Part]]:
    """Each part of the documents that match a query, cut into parts, ascending. A part of one number is never cut."""
    found: list[list[Part]] = [[] for _ in wanted]
    bounds = cluster.bounds
    left = [(number, one) for number, (_, one) in enumerate(wanted)]
    while left:
        large: list[tuple[int, Part]] = []
        for number, one in left:
            if one.filled(bounds) > 1 and one.first < one.last:
                large.append((number, one))
            else:
                found[number].append(one)
        bodies = [_histogram(field, wanted[number][0], one, one.filled(bounds)) for number, one in large]
        answers = await cluster.searches(index, bodies, routing=routing)
        left = [
            (number, part(bucket))
            for (number, _), answer in zip(large, answers, strict=True)
            for bucket in _buckets(answer)
        ]
    return [sorted(parts) for parts in found]


def _histogram(field: str, query: JsonObject, part: Part, filled: float) -> JsonObject:
    """A search for the documents of a part in at least two buckets. It would fill so many parts."""
    width = part.last - part.first
    interval = min(max(1, int(width * _FILLED / filled), width // _BUCKETS), width)
    buckets: JsonObject = {"histogram": {"field": field, "interval": interval, "min_doc_count": 1}}
    return {
        "size": 0,
        "track_total_hits": False,
        "query": all_of(query, *between(field, part.first, part.last)),
        "aggs": {"parts": {**buckets, "aggs": measures(field)}},
    }


def _buckets(answer: JsonObject) -> list[Any]:
    """The buckets of an answer; none if the index is gone."""
    found: list[Any] = answer["aggregations"]["parts"]["buckets"] if "aggregations" in answer else []
    return found
