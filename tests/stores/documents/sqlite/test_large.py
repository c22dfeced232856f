"""Large texts in documents: what is asked of all documents takes no more memory than a few of them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from apiserver.common.answers import Answers, AnswerTooLarge, Held
from apiserver.stores.documents.query import Filter, In
from apiserver.stores.documents.sqlite.bounds import BOUNDS, SqliteBounds
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore
from apiserver.stores.documents.sqlite.work import READERS

pytestmark = pytest.mark.anyio

COUNT = 30


@pytest.fixture
def bounds() -> SqliteBounds:
    return BOUNDS


@pytest.fixture
async def store(tmp_path: Path, bounds: SqliteBounds) -> AsyncIterator[SqliteDocumentStore]:
    opened = SqliteDocumentStore(tmp_path / "documents.db", bounds=bounds)
    await opened.open()
    yield opened
    await opened.close()


@pytest.mark.test
async def test_values_of_groups_count_while_they_are_read(store: SqliteDocumentStore) -> None:
    lists = [[f"{number}-{item}" + "x" * 1000 for item in range(1000)] for number in range(COUNT)]
    await store.insert("tasks", [{"id": f"{number}", "tags": tags} for number, tags in enumerate(lists)])
    held = Held(Answers())
    few: Filter = {"id": In(["1", "2"])}

    assert await store.distinct("tasks", "tags", few, counted=held.add) == sorted([*lists[1], *lists[2]])
    once = held.size
    assert once > 2 * 2**20
    await store.distinct("tasks", "tags", few, counted=held.add)  # nothing was remembered
    assert held.size == 2 * once
    with pytest.raises(AnswerTooLarge):
        await store.distinct("tasks", "tags", {}, counted=held.add)


@pytest.mark.parametrize("bounds", [SqliteBounds(long=8)])
async def test_documents_are_grouped_by_long_and_short_values(store: SqliteDocumentStore) -> None:
    values = [["a"], ["a"], ["a long one"], ["a long one"], [], None, None]
    await store.insert("tasks", [{"id": f"{number}", "tags": tags} for number, tags in enumerate(values)])
    assert await store.count_by("tasks", {}, ["tags"]) == {
        ('["a"]',): 2,
        ('["a long one"]',): 2,
        ("[]",): 1,
        (None,): 2,
    }


async def test_who_calls_is_found_out_while_all_threads_search(store: SqliteDocumentStore) -> None:
    await store.insert("credentials", [{"id": "a", "key": "k"}])
    await store.insert("tasks", [{"id": "b"}])
    searching, done = threading.Semaphore(0), threading.Event()

    def wait(size: int) -> None:
        searching.release()
        done.wait()

    searches = [asyncio.create_task(store.find("tasks", {}, counted=wait)) for _ in range(20)]
    try:
        async with asyncio.timeout(120):
            for _ in range(READERS):
                await asyncio.to_thread(searching.acquire)
            assert await store.find_one("credentials", {"key": "k"}) == {"id": "a", "key": "k"}
    finally:
        done.set()
    assert await asyncio.gather(*searches) == [[{"id": "b"}]] * 20
