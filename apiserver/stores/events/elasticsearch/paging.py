"""Reading matching documents in a sort order, any number of them.

Those that are all small come in pages behind one another under a point in time (`pages`). Log lines and samples may be
large: of these an answer has some 16 MB at most (`texts`), as nodes put a whole answer together before they send any.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing

from apiserver.answers import reading
from apiserver.events.model import JsonObject
from apiserver.stores.events.base import PAGE_BYTES, Event, bytes_of
from apiserver.stores.events.elasticsearch.cluster import Cluster, NodeAnswerTooLarge
from apiserver.stores.events.elasticsearch.parts import in_parts
from apiserver.stores.events.elasticsearch.queries import BARE, all_of, without

#: As many as one search gives.
WINDOW = 10_000
ALL = 2**62

#: Bytes of one answer of small events.
AN_ANSWER = 16 * 2**20
#: Bytes of large events in one answer, unless it is a single one: a page needs no more.
LARGE_TOGETHER = PAGE_BYTES
_BEHIND = 2**63 - 1
_LARGE: JsonObject = {"exists": {"field": "large"}}


async def hits_of(pages: AsyncIterator[list[JsonObject]]) -> list[JsonObject]:
    """The hits of all pages, for who has room for them."""
    return [hit async for page in pages for hit in page]


async def pages(
    cluster: Cluster,
    index: str,
    routing: str,
    query: JsonObject,
    sort: Sequence[JsonObject],
    *,
    fields: Sequence[str] = (),
    stored: Sequence[str] = (),
    after: Sequence[object] | None = None,
    limit: int,
    window: int = WINDOW,
) -> AsyncIterator[list[JsonObject]]:
    """Up to `limit` hits beyond the position `after`: `sort` has a hit's values of the sort's fields, `fields` others.

    `fields` are read from columns, `stored` from where whole texts are. The sort's values must be an event's own, so
    that no two hits share them. One search gives up to `window` of them, a page.
    """
    body: JsonObject = {**BARE, "query": query, "sort": sort}
    if fields:
        body["docvalue_fields"] = list(fields)
    if stored:
        body["stored_fields"] = list(stored)
    if after is not None:
        body["search_after"] = list(after)
    if limit <= window:
        answer = await cluster.search(index, {**body, "size": limit}, routing=routing)
        yield answer["hits"]["hits"]
        return
    # Under a point in time, a last field, the document's place, is sorted by unasked.
    places = len(sort)
    if "search_after" in body:
        body["search_after"].append(_BEHIND)
    async with cluster.point_in_time(index, routing=routing) as point:
        while limit > 0:
            size = min(limit, window)
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
) -> AsyncGenerator[list[JsonObject]]:
    """As `pages`, of events that may be large; `window` small ones have AN_ANSWER at most.

    Two searches in one request find up to `window` small ones with their texts, and where the large ones are. If there
    are some among those small ones, their texts are asked for when they are wanted, as many at once as fit:

        a  b  [3 MB]  c  [4 MB]  [5 MB]  d      come as      a  b  [3 MB]  c  [4 MB]   and   [5 MB]  d

    An event that becomes large, or small, between the two searches may be missing, or be there as it was and as it is.
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
        try:
            small, large = await cluster.searches(index, searches, routing=routing)
        except NodeAnswerTooLarge:  # large ones of earlier releases, which do not say so
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
        if len(found) < size:
            return
        body["search_after"] = found[-1]["sort"]
        limit -= size


async def page(hits: AsyncGenerator[list[JsonObject]], event: Callable[[JsonObject], Event]) -> list[Event]:
    """The events that the first hits are, up to the one with which they have PAGE_BYTES; no more hits are read."""
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


def _large(hit: JsonObject) -> int:
    """How large the event is that a hit tells the place of; 0 for a hit with its text."""
    large: list[int] = hit["fields"].get("large", [0])
    return large[0]


def _in_order(hits: list[JsonObject], more: list[JsonObject], sort: Sequence[JsonObject]) -> list[JsonObject]:
    """All hits in the order, which either have. By later fields first, as a sort leaves in its order what is equal."""
    if not more:
        return hits
    found = [*hits, *more]
    for place, (direction,) in reversed([*enumerate(by.values() for by in sort)]):
        found.sort(key=lambda hit: hit["sort"][place], reverse=direction == "desc")
    return found
