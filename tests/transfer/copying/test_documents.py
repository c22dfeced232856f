"""Copies of documents: the same, whatever was interrupted, and counted."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.query import Document, Update
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore
from apiserver.transfer.copying import documents
from apiserver.transfer.copying.retrying import CopyError
from tests.chance import examples
from tests.contract.document_stores import store
from tests.stores.documents import strategies

__all__ = ["store"]

pytestmark = pytest.mark.anyio

TASKS: list[Document] = [
    {
        "id": f"{n:02}",
        "company": f"c{n % 2}",
        "name": "é\0",
        "last_metrics": {"a": {"v": {"value": n / 3}}},
        "n": 2**62 + n,
    }
    for n in range(11)
]
PROJECTS: list[Document] = [{"id": "p", "company": "c", "name": "n", "tags": ["a", None, {}], "parent": None}]


copy_documents = partial(documents.copy_documents, page=3, page_of_ids=2)


@pytest.fixture
async def source(tmp_path: Path) -> AsyncIterator[DocumentStore]:
    opened = SqliteDocumentStore(tmp_path / "source.db")
    await opened.open()
    await opened.insert("tasks", TASKS)
    await opened.insert("projects", PROJECTS)
    yield opened
    await opened.close()


@pytest.fixture
async def back(tmp_path: Path) -> AsyncIterator[DocumentStore]:
    opened = SqliteDocumentStore(tmp_path / "back.db")
    await opened.open()
    yield opened
    await opened.close()


async def copy(source: DocumentStore, target: DocumentStore, *, replaces: bool = False) -> int:
    """Copy in small pages."""
    return await copy_documents(source, target, lambda line: None, replaces=replaces)


async def content(store: DocumentStore) -> dict[str, list[Document]]:
    return {name: await store.find(name, {}, sort=[("id", 1)]) for name in await store.collections()}


async def test_to_and_from_every_store(source: DocumentStore, store: DocumentStore, back: DocumentStore) -> None:
    assert await copy(source, store) == 12
    assert await copy(store, back) == 12
    assert await content(back) == {"projects": PROJECTS, "tasks": TASKS}


async def test_a_copy_goes_on_where_it_was_interrupted(
    source: DocumentStore, store: DocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = store.insert, 0

    async def insert(*arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise RuntimeError("interrupted")
        await real(*arguments)

    monkeypatch.setattr(store, "insert", insert)
    with pytest.raises(RuntimeError):
        await copy(source, store)
    await source.update("tasks", {"id": "00"}, Update(set={"name": "changed"}))
    assert await copy(source, store) == 12
    assert await content(store) == await content(source)
    assert calls == 3 + 4


@asynccontextmanager
async def two_stores() -> AsyncIterator[tuple[DocumentStore, DocumentStore]]:
    """Two empty stores."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = (SqliteDocumentStore(Path(folder) / f"{n}.db") for n in range(2))
        await source.open()
        await target.open()
        try:
            yield source, target
        finally:
            await source.close()
            await target.close()


@pytest.mark.test
@examples(15)
@given(strategies.collections)
def test_any_documents_are_copied(found: list[Document]) -> None:
    async def check() -> None:
        async with two_stores() as (source, target):
            await source.insert("things", found)
            assert await copy(source, target) == len(found)
            assert repr(await content(target)) == repr(await content(source))

    asyncio.run(check())


async def test_a_target_that_holds_something_else_is_refused(source: DocumentStore, back: DocumentStore) -> None:
    await back.insert("tasks", [TASKS[0], {"id": "else"}])
    with pytest.raises(CopyError, match="the target holds documents in 'tasks' that the source does not have"):
        await copy(source, back)
    assert await back.count("projects", {}) == 0


@pytest.mark.test
@pytest.mark.parametrize("is_there_still", [False, True])
async def test_a_name_that_another_document_had_before_is_replaced(
    source: DocumentStore, back: DocumentStore, is_there_still: bool
) -> None:
    """As when a project is deleted, or renamed, and another one is made with its name."""
    await back.insert("projects", [{"id": "z", "company": "c", "name": "taken"}])
    await source.insert("projects", [{"id": id, "company": "c", "name": id} for id in ("b", "c", "d")])
    await source.insert("projects", [{"id": "a", "company": "c", "name": "taken"}])
    if is_there_still:
        await source.insert("projects", [{"id": "z", "company": "c", "name": "renamed"}])
    await copy(source, back, replaces=True)
    assert await content(back) == await content(source)


some_of_them = st.tuples(strategies.collections, st.sets(st.integers(0, 5))).map(
    lambda drawn: [document for number, document in enumerate(drawn[0]) if number not in drawn[1]]
)


@pytest.mark.test
@examples(15)
@given(some_of_them, some_of_them)
def test_what_is_replaced_is_what_the_source_has(before: list[Document], found: list[Document]) -> None:
    async def check() -> None:
        async with two_stores() as (source, target):
            await source.insert("things", found)
            await target.insert("things", before)
            await target.insert("others", before)
            assert await copy(source, target, replaces=True) == len(found)
            assert repr(await content(target)) == repr(await content(source))

    asyncio.run(check())
