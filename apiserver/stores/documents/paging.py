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

    A document that is added or deleted meanwhile may be in one.
    """
    last = ""
    while page := await store.find(
        collection, {**(wanted or {}), "id": Greater(last)}, projection=projection, sort=[("id", 1)], limit=limit
    ):
        yield page
        last = page[-1]["id"]
