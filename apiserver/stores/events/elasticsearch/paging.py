"""Reads any number of matching documents in a sort order.

Points are small, and are read page after page at a point in time (`pages`). Log lines and samples may be large. Nodes
put a whole answer together in memory before they send it. So answers of these have about 16 MB at most (`texts`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing

from apiserver.answers import reading
from apiserver.events.model import JsonObject
from apiserver.events.queries import GREATEST
from apiserver.stores.events.base import PAGE_BYTES, Event, bytes_of
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.errors import NodeAnswerTooLarge
from apiserver.stores.events.elasticsearch.queries import BARE, all_of, between, without
from apiserver.stores.events.parts import in_parts

#: The most documents that one search returns.
WINDOW = 10_000
ALL = 2**62

#: Bytes of one answer of small events.
AN_ANSWER = 16 * 2**20
#: Bytes of large events in one answer, unless there is only one. A page needs no more.
LARGE_TOGETHER = PAGE_BYTES
_BEHIND = 2**63 - 1
_FURTHER = 4
_LARGE: JsonObject = {"exists": {"field": "large"}}


async def pages(
    cluster: Cluster,
    index: str,
    routing: str,
    query: JsonObject,
    sort: Sequence[JsonObject],
    *,
    fields: Sequence[str],
    after: Sequence[object] | None = None,
    limit: int,
) -> AsyncIterator[list[JsonObject]]:
    """Up to `limit` hits beyond the position `after`, in pages of up to WINDOW.

    A hit has the values of the sort's fields in `sort`, and of those that `fields` names in `fields`. No two hits may
    have the same values of the sort's fields.
    """
    body: JsonObject = {**BARE, "query": query, "sort": sort, "docvalue_fields": list(fields)}
    if after is not None:
        body["search_after"] = list(after)
    if limit <= WINDOW:
        answer = await cluster.search(index, {**body, "size": limit}, routing=routing)
        yield answer["hits"]["hits"]
        return
    # At a point in time, Elasticsearch adds the document's place as a last field of the sort.
    places = len(sort)
    if "search_after" in body:
        body["search_after"].append(_BEHIND)
    async with cluster.point_in_time(index, routing=routing) as point:
        while limit > 0:
            size = min(limit, WINDOW)
            hits = (await cluster.search_at(point, {**body, "size": size}))["hits"]["hits"]
            if hits:
                body["search_after"] = [*hits[-1]["sort"]]
            for hit in hits:
                del hit["sort"][places:]
            yield hits
            if len(hits) < size:
                return
            limit -= size


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
    number: str = "",
) -> AsyncGenerator[list[JsonObject]]:
    """As `pages`, for events that may be large. A hit has the texts named by `stored` in `fields`, too.

    One request with two searches finds up to `window` small events with their texts, and the places of large ones. So
    many small events must fit into AN_ANSWER. The texts of large events among the small ones are read when they are
    needed, as many at once as fit into 8 MB:

        a  b  [3 MB]  c  [4 MB]  [5 MB]  d      come as      a  b  [3 MB]  c  [4 MB]   and   [5 MB]  d

    `number` is the first field of an ascending sort, in an index that keeps its greatest numbers first. A search there
    looks at all documents behind `after`, so a walk over n of them would look n² / 2 times. Therefore a search that
    follows a full window leaves out what is further ahead than four times the width of that window. If it finds too
    few, the next search leaves out nothing.

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
    ahead: list[JsonObject] = []
    while limit > 0:
        size = min(limit, window)
        searches = [
            {**body, **whole, "query": all_of(query, *ahead, without(_LARGE)), "size": size},
            {**body, **place, "query": all_of(query, *ahead, _LARGE), "size": size},
        ]
        try:
            small, large = await cluster.searches(index, searches, routing=routing)
        except NodeAnswerTooLarge:  # earlier releases wrote large events without the field `large`
            if size == 1:
                raise
            window = max(1, size // 8)
            continue
        found = _in_order(small["hits"]["hits"], large["hits"]["hits"], sort)[:size]
        for part in in_parts(found, _large, LARGE_TOGETHER):
            ids = [hit["_id"] for hit in part if _large(hit)]
            if ids:
                these = {**BARE, **whole, "sort": sort, "query": {"ids": {"values": ids}}, "size": len(ids)}
                answer = await cluster.search(index, these, routing=routing)
                part = _in_order([hit for hit in part if not _large(hit)], answer["hits"]["hits"], sort)
            yield part
        full = len(found) == size
        if not full and not ahead:
            return
        if found:
            body["search_after"] = found[-1]["sort"]
        limit -= len(found)
        ahead = _near(number, found) if number and full else []


async def page(hits: AsyncGenerator[list[JsonObject]], event: Callable[[JsonObject], Event]) -> list[Event]:
    """The events of the first hits, up to the one that brings them to PAGE_BYTES. No more hits are read."""
    found, size = [], 0
    with reading():
        async with aclosing(hits):
            async for some in hits:
                for one in map(event, some):
                    found.append(one)
                    size += bytes_of(one)
                    if size >= PAGE_BYTES:
                        return found
    return found


def _near(number: str, found: list[JsonObject]) -> list[JsonObject]:
    """Conditions for what is at most four times as far ahead of these hits as they are wide."""
    first, last = found[0]["sort"][0], found[-1]["sort"][0]
    return between(number, None, min(last + _FURTHER * (last - first), GREATEST))


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
