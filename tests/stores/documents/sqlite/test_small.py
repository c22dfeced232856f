"""Large fields of one document are read without a thread while they are known to be small."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.stores.documents.query import Update
from apiserver.stores.documents.sqlite.small import SMALL, SmallFields
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore

pytestmark = pytest.mark.anyio

_LONG = "x" * SMALL


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteDocumentStore]:
    store = SqliteDocumentStore(tmp_path / "documents.db")
    await store.open()
    await store.insert("tasks", [{"id": "t", "company": "c", "script": {"diff": ""}, "last_metrics": {}}])
    yield store
    await store.close()


async def _on_loop(store: SqliteDocumentStore, field: str, id: str = "t") -> bool:
    """Whether the field is read in this thread."""
    threads: list[int] = []
    await store.find("tasks", {"id": id}, projection=[field], counted=lambda _: threads.append(threading.get_ident()))
    return set(threads) == {threading.get_ident()}


async def test_a_field_is_read_in_a_thread_until_it_is_known_to_be_small(store: SqliteDocumentStore) -> None:
    assert [await _on_loop(store, "script") for _ in range(3)] == [False, True, True]
    assert [await _on_loop(store, "last_metrics") for _ in range(2)] == [False, True]
    assert await _on_loop(store, "script")


async def test_a_document_that_gets_a_long_field_is_read_in_a_thread_again(store: SqliteDocumentStore) -> None:
    await _on_loop(store, "script")
    await store.update("tasks", {"id": "t"}, Update(set={"script.diff": "short"}))
    assert await _on_loop(store, "script")
    await store.update("tasks", {"id": "t"}, Update(set={"script.diff": _LONG}))
    assert [await _on_loop(store, "script") for _ in range(3)] == [False] * 3
    await store.find_and_update("tasks", {"id": "t"}, Update(set={"script.diff": "short"}))
    assert [await _on_loop(store, "script") for _ in range(2)] == [False, True]


async def test_a_document_that_is_deleted_is_forgotten(store: SqliteDocumentStore) -> None:
    fields = store._work.small
    await _on_loop(store, "script")
    assert fields.has("tasks", "t", ["script"])
    await store.delete("tasks", {"company": "c"})
    assert fields._known == {}


async def test_a_document_that_is_made_again_after_it_was_deleted_may_be_large(store: SqliteDocumentStore) -> None:
    assert [await _on_loop(store, "script") for _ in range(2)] == [False, True]
    await store.delete("tasks", {"id": "t"})
    await store.insert("tasks", [{"id": "t", "company": "c", "script": {"diff": _LONG}}])
    assert not await _on_loop(store, "script")


async def test_a_document_that_is_deleted_while_it_is_read_is_forgotten(
    store: SqliteDocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = store._work.read

    async def overtaken(*arguments: Any, **named: Any) -> Any:
        found = await read(*arguments, **named)
        await store.delete("tasks", {"id": "t"})
        return found

    monkeypatch.setattr(store._work, "read", overtaken)
    assert await store.find("tasks", {"id": "t"}, projection=["script"])
    assert store._work.small._known == {}


async def test_ids_that_no_document_has_are_not_remembered(store: SqliteDocumentStore) -> None:
    await store.find("tasks", {"id": "unknown"}, projection=["script"])
    await store.insert("tasks", [{"id": "unknown", "company": "c", "script": {"diff": _LONG}}])
    assert not await _on_loop(store, "script", "unknown")


def test_as_many_documents_are_remembered_as_there_is_room_for() -> None:
    fields = SmallFields(most=2)
    for id in ("a", "b", "c"):
        fields.read("tasks", id, ["script"], 1)
    assert [fields.has("tasks", id, ["script"]) for id in ("a", "b", "c")] == [False, False, True]
