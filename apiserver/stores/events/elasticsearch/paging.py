"""Reading matching documents in a sort order, any number of them: pages behind one another under a point in time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from apiserver.events.model import JsonObject
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.queries import BARE

#: As many as one search gives.
WINDOW = 10_000
ALL = 2**62

_BEHIND = 2**63 - 1


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
