"""The document stores that the contract is tested on."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.mongo.store import MongoDocumentStore
from apiserver.stores.documents.query import Document, Filter, Sort
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore


def sqlite(request: pytest.FixtureRequest) -> DocumentStore:
    folder: Path = request.getfixturevalue("tmp_path")
    return SqliteDocumentStore(folder / "documents.db")


def mongo(request: pytest.FixtureRequest) -> DocumentStore:
    url, name = request.getfixturevalue("mongodb_url"), request.getfixturevalue("mongodb_shared_database")
    return MongoDocumentStore(f"{url}/{name}", migrate=True)


ENGINES: dict[str, Callable[[pytest.FixtureRequest], DocumentStore]] = {"mongo": mongo, "sqlite": sqlite}


@pytest.fixture(params=["sqlite", pytest.param("mongo", marks=pytest.mark.check)])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[DocumentStore]:
    """An open store with nothing in it."""
    opened = ENGINES[request.param](request)
    await opened.open()
    yield opened
    await opened.close()


async def fill(store: DocumentStore, *documents: Document, collection: str = "things") -> None:
    await store.insert(collection, list(documents))


async def ids(store: DocumentStore, filter: Filter, *, sort: Sort = (), collection: str = "things") -> list[str]:
    found = [document["id"] for document in await store.find(collection, filter, projection=["id"], sort=sort)]
    return found if sort else sorted(found)
