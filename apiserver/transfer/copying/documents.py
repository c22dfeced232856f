"""Copies all documents of all companies, page by page, by id. Writes only documents that are missing or different."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from apiserver.common.sizes import counted
from apiserver.stores.documents.base import DocumentStore, DuplicateDocument
from apiserver.stores.documents.query import AllOf, AtMost, Document, Filter, Greater, In, NotIn
from apiserver.transfer.copying.retrying import CopyError, Say, patiently

#: Documents of a page, with their contents and without.
PAGE, PAGE_OF_IDS = 100, 5000
#: Collections that documents of others name. They come last, in this order: if servers write meanwhile, what a document
#: names was made before it, and so is copied.
_NAMED = ("tasks", "models", "projects", "users", "companies")


class _NameTaken(CopyError):
    """Another document of the target has a name, or another unique value, of one that is copied."""


async def copy_documents(
    source: DocumentStore,
    target: DocumentStore,
    say: Say,
    *,
    replaces: bool = False,
    page: int = PAGE,
    page_of_ids: int = PAGE_OF_IDS,
) -> int:
    """Make the target's documents those of the source; returns how many there are.

    If the target holds documents that the source does not have, that is a CopyError; with `replaces`, they are deleted.
    CopyError if some are missing in the end. `page`: documents that are read at once; `page_of_ids`: ids.
    """
    collections = sorted(await patiently(say, source.collections), key=_turn)
    if not replaces:
        await _check_nothing_else(source, target, say, page_of_ids)
    for collection in {*await patiently(say, target.collections)} - {*collections} if replaces else ():
        await patiently(say, target.delete, collection, {})
    total = 0
    for collection in collections:
        try:
            number = await _copy(source, target, collection, say, replaces=replaces, limit=page)
        except _NameTaken:
            if not replaces:
                raise
            # The document that has the name now comes before the one that had it: so all are put anew.
            await patiently(say, target.delete, collection, {})
            number = await _copy(source, target, collection, say, replaces=replaces, limit=page)
        total += number
        say(f"documents: {number:,} in '{collection}', all there")
    return total


async def _copy(
    source: DocumentStore, target: DocumentStore, collection: str, say: Say, *, replaces: bool, limit: int
) -> int:
    number, last = 0, ""
    async for page in _pages(source, collection, say, limit=limit):
        if replaces:
            await patiently(say, target.delete, collection, _others(page, last))
        await patiently(say, _put, target, collection, page)
        number, last = number + len(page), page[-1]["id"]
    if replaces:
        await patiently(say, target.delete, collection, {"id": Greater(last)})
    found = await patiently(say, target.count, collection, {})
    if found != number:
        raise CopyError(
            f"the source has {counted(number, 'documents')} in '{collection}', the target {found:,}: copy again"
        )
    return number


def _others(page: Sequence[Document], last: str) -> Filter:
    """Documents that are not in a page of all documents behind the id `last`, though they would be."""
    ids = [document["id"] for document in page]
    return AllOf([{"id": Greater(last)}, {"id": AtMost(ids[-1])}, {"id": NotIn(ids)}])


def _turn(collection: str) -> int:
    return _NAMED.index(collection) if collection in _NAMED else -1


async def _check_nothing_else(source: DocumentStore, target: DocumentStore, say: Say, limit: int) -> None:
    for collection in await patiently(say, target.collections):
        async for page in _pages(target, collection, say, limit=limit, projection=()):
            ids = [document["id"] for document in page]
            if await patiently(say, source.count, collection, {"id": In(ids)}) != len(ids):
                raise CopyError(
                    f"the target holds documents in '{collection}' that the source does not have: copy into an empty "
                    "target, before a server is started on it"
                )


async def _pages(
    store: DocumentStore, collection: str, say: Say, *, limit: int, projection: Sequence[str] | None = None
) -> AsyncIterator[list[Document]]:
    """Pages of all documents of a collection, by id."""
    filter: Document = {}
    while True:
        page = await patiently(
            say, store.find, collection, filter, projection=projection, sort=[("id", 1)], limit=limit
        )
        if page:
            yield page
        if len(page) < limit:
            return
        filter = {"id": Greater(page[-1]["id"])}


async def _put(target: DocumentStore, collection: str, page: Sequence[Document]) -> None:
    """Write the documents of a page that the target does not have, or that differ there."""
    named = {"id": In([document["id"] for document in page])}
    there = {document["id"]: document for document in await target.find(collection, named)}
    differing = [document for document in page if there.get(document["id"]) != document]
    if not differing:
        return
    await target.delete(collection, {"id": In([document["id"] for document in differing])})
    try:
        await target.insert(collection, differing)
    except DuplicateDocument as error:
        raise _NameTaken(f"'{collection}' of the target holds other documents already: {error}") from error
