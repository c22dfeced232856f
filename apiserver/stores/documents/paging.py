"""Walks over all documents of a collection, some at a time, while others change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.narrowed import NarrowedReads
from apiserver.stores.documents.query import Document, Greater


async def pages_by_id(
    store: DocumentStore | NarrowedReads[Any],
    collection: str,
    *,
    wanted: Mapping[str, Any] | None = None,
    projection: Sequence[str] | None = None,
    limit: int,
) -> AsyncIterator[list[Document]]:
    """Pages of up to `limit` documents that have the values `wanted`, by their ids.

    A page may have a document that is added or deleted meanwhile.

    Engines find ids in order by going over those of all companies. So a part of the collection that fits into a page is
    asked for by age: of each company, they know that order.
    """
    is_part = bool(wanted) or isinstance(store, NarrowedReads)
    if is_part:
        by_age = [("created", 1), ("id", 1)]
        few = await store.find(collection, wanted or {}, projection=projection, sort=by_age, limit=limit + 1)
        if len(few) <= limit:
            if few:
                yield sorted(few, key=lambda document: str(document["id"]))
            return
    last = ""
    while page := await store.find(
        collection, {**(wanted or {}), "id": Greater(last)}, projection=projection, sort=[("id", 1)], limit=limit
    ):
        yield page
        last = page[-1]["id"]
