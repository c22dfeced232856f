"""Reading matching documents in a sort order, any number of them: pages behind one another under a point in time."""

from __future__ import annotations

from collections.abc import Sequence

from apiserver.stores.events.elasticsearch.cluster import Cluster, JsonObject
from apiserver.stores.events.elasticsearch.queries import BARE

#: As many as one search gives.
WINDOW = 10_000
ALL = 2**62

_BEHIND = 2**63 - 1


async def read(
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
) -> list[JsonObject]:
    """Up to `limit` hits beyond the position `after`: `sort` has a hit's values of the sort's fields, `fields` others.

    `fields` are read from columns, `stored` from where whole texts are. The sort's values must be an event's own, so
    that no two hits share them. One search gives up to `window` of them.
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
        return list(answer["hits"]["hits"])
    return await _read_on(cluster, index, routing, body, limit, window)


async def _read_on(
    cluster: Cluster, index: str, routing: str, body: JsonObject, limit: int, window: int
) -> list[JsonObject]:
    """Page behind page. Under a point in time, a last field, the document's place, is sorted by unasked."""
    found: list[JsonObject] = []
    fields = len(body["sort"])
    if "search_after" in body:
        body["search_after"].append(_BEHIND)
    async with cluster.point_in_time(index, routing=routing) as point:
        while len(found) < limit:
            size = min(limit - len(found), window)
            hits = (await cluster.search_at(point, {**body, "size": size}))["hits"]["hits"]
            found += hits
            if len(hits) < size:
                break
            body["search_after"] = [*hits[-1]["sort"]]
    for hit in found:
        del hit["sort"][fields:]
    return found


def value(hit: JsonObject, field: str) -> object:
    """The hit's value of a field that was asked for, or None."""
    values = hit.get("fields", {}).get(field)
    return values[0] if values else None
