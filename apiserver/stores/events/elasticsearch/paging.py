"""Reads any number of matching documents in a sort order. They may be large.

Nodes put a whole answer together in memory before they send it. So answers have about 16 MB at most.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from apiserver.common.answers import reading
from apiserver.events.model import JsonObject
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.queries import BARE, all_of, without
from apiserver.stores.events.parts import in_parts
from apiserver.stores.events.sizes import PAGE_BYTES, Event, bytes_of

ALL = 2**62
_LARGE: JsonObject = {"exists": {"field": "large"}}


async def texts(
    cluster: Cluster,
    index: str,
    routing: str,
    query: JsonObject,
    sort: Sequence[JsonObject],
    *,
    fields: Sequence[str],
    stored: Sequence[str],
    after: Sequence[object] | None = None,
    limit: int = ALL,
    window: int,
) -> AsyncGenerator[list[JsonObject]]:
    """Up to `limit` hits beyond the position `after`, some at a time.

    A hit has the values of the sort's fields in `sort`, and those of `fields` and the texts named by `stored` in
    `fields`. No two hits may have the same values of the sort's fields.

    One request with two searches finds up to `window` small events with their texts, and the places of large ones. So
    many small events must fit into an answer. The texts of large events among the small ones are read when they are
    needed, as many at once as fit into 8 MB:

        a  b  [3 MB]  c  [4 MB]  [5 MB]  d      come as      a  b  [3 MB]  c  [4 MB]   and   [5 MB]  d

    An event that becomes large or small between the two searches may be missing, or come twice: as it was and as it is.
    """
    body: JsonObject = {**BARE, "sort": sort}
    whole = {"docvalue_fields": fields, "stored_fields": stored}
    place = {"docvalue_fields": ["large"], "stored_fields": []}  # with [] the id comes
    if after is not None:
        body["search_after"] = list(after)
    if limit == 1:
        answer = await cluster.search(index, {**body, **whole, "query": query, "size": 1}, routing=routing)
        yield answer["hits"]["hits"]
        return
    while limit > 0:
        size = min(limit, window)
        searches = [
            {**body, **whole, "query": all_of(query, without(_LARGE)), "size": size},
            {**body, **place, "query": all_of(query, _LARGE), "size": size},
        ]
        small, large = await cluster.searches(index, searches, routing=routing)
        in_order = _in_order(small["hits"]["hits"], large["hits"]["hits"], sort)[:size]
        for part in in_parts(in_order, _large, cluster.bounds.large_together):
            ids = [hit["_id"] for hit in part if _large(hit)]
            if ids:
                search = {**BARE, **whole, "sort": sort, "query": {"ids": {"values": ids}}, "size": len(ids)}
                answer = await cluster.search(index, search, routing=routing)
                part = _in_order([hit for hit in part if not _large(hit)], answer["hits"]["hits"], sort)
            yield part
        if len(in_order) < size:
            return
        body["search_after"] = in_order[-1]["sort"]
        limit -= size


async def page(hits: AsyncGenerator[list[JsonObject]], event: Callable[[JsonObject], Event]) -> list[Event]:
    """The events of the first hits, up to the one that brings them to PAGE_BYTES. No more hits are read."""
    events, size = [], 0
    with reading():
        async with aclosing(hits):
            async for part in hits:
                for made in map(event, part):
                    events.append(made)
                    size += bytes_of(made)
                    if size >= PAGE_BYTES:
                        return events
    return events


def _large(hit: JsonObject) -> int:
    """The size of the large event whose place a hit is; 0 for a hit that has its text."""
    large: list[int] = hit["fields"].get("large", [0])
    return large[0]


def _in_order(hits: list[JsonObject], more: list[JsonObject], sort: Sequence[JsonObject]) -> list[JsonObject]:
    """All hits in the order of `sort`. They are sorted by its last field first, and by its first field last."""
    if not more:
        return hits
    found = [*hits, *more]
    for place, (direction,) in reversed([*enumerate(by.values() for by in sort)]):
        found.sort(key=lambda hit: hit["sort"][place], reverse=direction == "desc")
    return found
