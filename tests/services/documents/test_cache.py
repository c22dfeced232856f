"""What is document_cache is never older than the last change that was answered."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.services.documents.cache import DocumentCache
from apiserver.stores.documents.query import Document, FindQuery, Update
from apiserver.stores.documents.scoped import CompanyDocuments
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore

pytestmark = pytest.mark.anyio


class Watched(SqliteDocumentStore):
    """A store that counts how often it is asked; it may be one that others change, too."""

    asked = 0
    shared = False

    async def search(self, collection: str, query: FindQuery) -> list[Document]:
        self.asked += 1
        return await super().search(collection, query)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Watched]:
    made = Watched(tmp_path / "documents.db")
    await made.open()
    await made.insert("tasks", [{"id": "t", "company": "acme", "status": "created"}])
    yield made
    await made.close()


async def status(document_cache: DocumentCache, store: Watched, company: str = "acme", id: str = "t") -> Any:
    found = await document_cache.find_one(CompanyDocuments(store, company), "tasks", id, ("status",))
    return found and found["status"]


async def test_a_document_is_looked_up_once_until_something_changes(store: Watched) -> None:
    document_cache = DocumentCache(store)
    assert [await status(document_cache, store) for _ in range(3)] == ["created"] * 3
    assert store.asked == 1
    await store.update("tasks", {"id": "t"}, Update(set={"status": "published"}))
    assert await status(document_cache, store) == "published"
    await store.delete("tasks", {"id": "t"})
    assert await status(document_cache, store) is None
    await store.insert("tasks", [{"id": "t", "company": "acme", "status": "new"}])
    assert await status(document_cache, store) == "new"


async def test_changes_of_other_fields_and_collections_do_not_matter(store: Watched) -> None:
    document_cache = DocumentCache(store)
    assert await status(document_cache, store) == "created"
    await store.update("tasks", {"id": "t"}, Update(set={"last_update": "now", "name": "renamed"}))
    await store.insert("models", [{"id": "t", "company": "acme", "status": "new"}])
    assert await status(document_cache, store) == "created"
    assert store.asked == 1
    await store.update("tasks", {"id": "t"}, Update(set={"company": "other"}))
    assert await status(document_cache, store) is None


async def test_what_changes_while_it_is_looked_up_is_not_remembered(store: Watched) -> None:
    document_cache = DocumentCache(store)
    search = store.search

    async def overtaken(collection: str, query: FindQuery) -> list[Document]:
        store.search = search  # type: ignore[method-assign]
        found = await search(collection, query)
        await store.update("tasks", {"id": "t"}, Update(set={"status": "published"}))
        assert await status(document_cache, store, id="another") is None
        return found

    store.search = overtaken  # type: ignore[method-assign]
    assert await status(document_cache, store) == "created"
    assert await status(document_cache, store) == "published"


async def test_nothing_of_deleted_documents_is_kept(store: Watched) -> None:
    """Also if a document is deleted while it is looked up."""
    document_cache = DocumentCache(store)
    await store.insert("tasks", [{"id": id, "company": "acme", "status": "created"} for id in ("u", "v")])
    for id in ("t", "u"):
        assert await status(document_cache, store, id=id) == "created"
    search = store.search

    async def overtaken(collection: str, query: FindQuery) -> list[Document]:
        store.search = search  # type: ignore[method-assign]
        found = await search(collection, query)
        await store.delete("tasks", {"id": "u"})
        return found

    store.search = overtaken  # type: ignore[method-assign]
    await store.delete("tasks", {"id": "t"})
    assert await status(document_cache, store, id="u") == "created"
    assert await status(document_cache, store, id="v") == "created"
    kept = [document["id"] for found in document_cache._found.values() for document in found.documents.values()]
    assert kept == ["v"]


async def test_what_is_outdated_is_forgotten_also_of_fields_that_nobody_asks_for_again(store: Watched) -> None:
    document_cache = DocumentCache(store)
    await document_cache.find_one(CompanyDocuments(store, "acme"), "tasks", "t", ("name",))
    await store.delete("tasks", {"id": "t"})
    await store.insert("tasks", [{"id": "u", "company": "acme", "status": "created"}])
    assert await status(document_cache, store, id="u") == "created"
    kept = [document["id"] for found in document_cache._found.values() for document in found.documents.values()]
    assert kept == ["u"]


async def test_what_is_not_there_is_not_remembered(store: Watched) -> None:
    document_cache = DocumentCache(store)
    assert [await status(document_cache, store, id="x" * 100) for _ in range(2)] == [None, None]
    assert store.asked == 2


async def test_companies_and_fields_are_kept_apart(store: Watched) -> None:
    document_cache = DocumentCache(store)
    assert await status(document_cache, store) == "created"
    assert await status(document_cache, store, company="other") is None
    found = await document_cache.find_one(CompanyDocuments(store, "acme"), "tasks", "t", ("company",))
    assert found == {"id": "t", "company": "acme"}


async def test_what_others_may_change_is_remembered_for_a_moment(store: Watched) -> None:
    store.shared = True
    now = 100.0
    document_cache = DocumentCache(store, lambda: now)
    assert [await status(document_cache, store) for _ in range(3)] == ["created"] * 3
    assert store.asked == 1
    now += 1.1
    assert await status(document_cache, store) == "created"
    assert store.asked == 2
    await store.update("tasks", {"id": "t"}, Update(set={"status": "published"}))
    assert await status(document_cache, store) == "published"
