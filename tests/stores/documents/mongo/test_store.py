"""What the MongoDB engine adds to the contract: many processes at once, a server that goes away, large documents."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from bson import encode

import apiserver
from apiserver.stores.documents.base import (
    DocumentStoreBusy,
    DocumentStoreError,
    DuplicateDocument,
    Index,
    InvalidDocument,
)
from apiserver.stores.documents.mongo.store import MongoDocumentStore
from apiserver.stores.documents.query import Document, Matches, Update
from tests.engines import mongodb
from tests.engines.fixtures import running
from tests.engines.nodes import Node
from tests.harness import free_ports

pytestmark = pytest.mark.anyio

T = TypeVar("T")

UNIQUE = [Index("things", ("company", "deep.name"), unique=True), Index("things", ("key",), unique=True)]


@pytest.fixture
def uri(mongodb_url: str, mongodb_database: str) -> str:
    return f"{mongodb_url}/{mongodb_database}"


@pytest.fixture
async def store(uri: str) -> AsyncIterator[MongoDocumentStore]:
    opened = MongoDocumentStore(uri, migrate=True)
    await opened.open()
    yield opened
    await opened.close()


def test_motor_is_imported_by_one_module() -> None:
    package = Path(apiserver.__file__).parent
    using = [
        path.name for path in package.rglob("*.py") if re.search(r"^\s*(import|from) motor", path.read_text(), re.M)
    ]
    assert using == ["database.py"]


async def test_updates_by_many_processes_are_exact(store: MongoDocumentStore, uri: str) -> None:
    times, names = 25, ["a", "b", "c", "d"]
    command = [sys.executable, "-m", "tests.stores.documents.mongo.writer", uri]
    writers = [
        await asyncio.create_subprocess_exec(*command, name, str(times), stdout=subprocess.PIPE) for name in names
    ]
    taken: list[int] = []
    for writer in writers:
        output, _ = await writer.communicate()
        assert writer.returncode == 0
        taken += map(int, output.split())
    total = times * len(names)
    assert sorted(taken) == list(range(1, total + 1))
    [found] = await store.find("tasks", {})
    entries = found.pop("entries")
    assert sorted(entries) == sorted(f"{name}{number}" for name in names for number in range(times))
    last = {"m": dict.fromkeys(names, times - 1)}
    assert found == {"id": "shared", "n": 1, "many": [1] * total, "taken": [1] * total, "last_metrics": last}


async def test_upserts_of_the_same_document_at_once_are_one(store: MongoDocumentStore) -> None:
    fresh = {"id": "a", "n": [0]}
    await asyncio.gather(
        *(store.update("tasks", {"id": "a"}, Update(push={"n": [1]}), upsert=fresh) for _ in range(20))
    )
    assert await store.find("tasks", {}) == [{"id": "a", "n": [0] + [1] * 20}]


async def test_an_update_of_many_that_breaks_a_unique_index_is_taken_back(store: MongoDocumentStore) -> None:
    documents: list[Document] = [{"id": f"{n}", "company": "c", "name": f"{n}", "n": n} for n in range(40)]
    await store.insert("queues", documents)
    with pytest.raises(DuplicateDocument, match="company, name"):
        await store.update("queues", {}, Update(set={"name": "same", "m": 1}, max={"n": 50}), many=True)
    assert await store.find("queues", {}, sort=[("n", 1)]) == documents


async def test_documents_without_all_unique_fields_are_never_the_same(uri: str, store: MongoDocumentStore) -> None:
    await store.insert("queues", [{"id": "1", "company": "c"}, {"id": "2", "company": "c"}, {"id": "3"}, {"id": "4"}])
    await store.insert("queues", [{"id": "5", "company": "c", "name": None}, {"id": "6", "company": "c", "name": None}])
    await store.update("queues", {"id": "1"}, Update(set={"name": "n"}))
    with pytest.raises(DuplicateDocument):
        await store.update("queues", {"id": "2"}, Update(set={"name": "n"}))
    await store.update("queues", {"id": "1"}, Update(unset=["company"]))
    assert await store.update("queues", {"id": "2"}, Update(set={"name": "n"})) == 1


async def test_the_engines_own_fields_are_nobody_elses(store: MongoDocumentStore) -> None:
    document = {"id": "a", "_id": 1, "_rev": 2, "_unique": {"x": 1}, "__id": 3, "": 4}
    await store.insert("things", [document])
    assert await store.find("things", {"_id": 1, "_rev": 2}) == [document]
    assert await store.find("things", {"_id": "a"}) == []
    await store.update("things", {"id": "a"}, Update(max={"_id": 2, "_rev": 3}, unset=["_unique"]))
    assert await store.find("things", {}) == [{"id": "a", "_id": 2, "_rev": 3, "__id": 3, "": 4}]
    assert await store.find("things", {}, projection=["_id"], sort=[("_rev", 1)]) == [{"id": "a", "_id": 2}]
    assert await store.distinct("things", "_id", {}) == [2]


async def test_a_document_that_is_too_large_is_refused(store: MongoDocumentStore) -> None:
    text, numbers = "x" * (17 * 2**20), list(range(2 * 2**20))
    for large in (text, numbers):
        with pytest.raises(InvalidDocument, match="larger than the 16 MB"):
            await store.insert("things", [{"id": "fine"}, {"id": "large", "value": large}])
    assert await store.find("things", {}) == []
    await store.insert("things", [{"id": "fine"}])
    with pytest.raises(InvalidDocument, match="larger than the 16 MB"):
        await store.update("things", {"id": "fine"}, Update(set={"text": text}))


async def test_what_mongodb_takes_for_a_reference_is_refused(store: MongoDocumentStore) -> None:
    await store.insert("things", [{"id": "a", "schema": [{"$ref": "x"}, {"$id": 1}, '{"$ref": 1, "$id": 2}']}])
    for change in (
        Update(set={"n": [{"$ref": "x", "$id": 1}]}),
        Update(push={"schema": [{"$ref": 1, "$id": 2}]}),
    ):
        with pytest.raises(InvalidDocument, match=r"\$ref"):
            await store.update("things", {"id": "a"}, change)
    [found] = await store.find("things", {})
    assert found["schema"] == [{"$ref": "x"}, {"$id": 1}, '{"$ref": 1, "$id": 2}']


async def test_whole_numbers_are_pythons_own(store: MongoDocumentStore) -> None:
    await store.insert("things", [{"id": "a", "n": [2**40, {"m": -(2**63)}]}])
    [found] = await store.find("things", {})
    assert type(found["n"][0]) is int
    assert type(found["n"][1]["m"]) is int


async def test_a_pattern_stops_reading_when_the_page_is_full(store: MongoDocumentStore) -> None:
    await store.insert("things", [{"id": f"{n:04}", "name": f"n{n}", "more": "x"} for n in range(600)])
    pattern = {"name": Matches("n(1|2)")}
    page = await store.find("things", pattern, sort=[("id", -1)], skip=3, limit=2)
    assert page == [{"id": f"0{n}", "name": f"n{n}", "more": "x"} for n in (296, 295)]
    assert await store.count("things", pattern) == 222
    assert await store.count_by("things", pattern, ["more"]) == {("x",): 222}
    changed = await store.find_and_update("things", pattern, Update(set={"n": 1}))
    assert await store.find("things", {"n": 1}) == [changed]
    assert await store.delete("things", pattern) == 222
    assert await store.count("things", {}) == 378


async def test_replies_are_few_for_small_documents_and_small_for_large_ones(store: MongoDocumentStore) -> None:
    for collection, count, text in (("small", 600, "x"), ("large", 12, "x" * 3_000_000)):
        for n in range(0, count, 10):
            await store.insert(collection, [{"id": f"{n + k:03}", "text": text} for k in range(min(10, count - n))])
    told: list[int] = []
    assert len(await store.find("small", {}, counted=told.append)) == 600
    assert len(told) == 2
    told.clear()
    assert len(await store.find("large", {}, counted=told.append)) == 12
    assert len(told) == 12
    assert 3_000_000 < max(told) < 3_001_000


async def test_many_values_count_for_more_than_a_text(store: MongoDocumentStore) -> None:
    async def told(value: Any) -> tuple[int, int]:
        """The bytes of a document as it is sent, and those that a find of it counts."""
        counts: list[int] = []
        await store.insert("things", [{"id": "a", "value": value}])
        [found] = await store.find("things", {"id": "a"}, counted=counts.append)
        await store.delete("things", {"id": "a"})
        return len(encode(found)), sum(counts)

    size, counted = await told("x" * 1_000_000)
    assert size <= counted < size + 100
    size, counted = await told({f"{n:06}": n for n in range(70_000)})
    assert counted > 5 * size
    size, counted = await told("b")
    assert 3 * size <= counted < 3 * (size + 100)


async def test_a_server_that_is_not_there_is_told() -> None:
    [port] = free_ports(1)
    store = MongoDocumentStore(f"mongodb://127.0.0.1:{port}/d?serverSelectionTimeoutMS=100")
    with pytest.raises(DocumentStoreBusy, match="MongoDB does not answer"):
        await store.open()
    with pytest.raises(DocumentStoreError, match="not open"):
        await store.find("tasks", {})


@pytest.mark.parametrize(
    "uri", ["mongodb://h:1/d?tlsCAFile=/nowhere.pem", "mongodb://h:port/d", "mongodb://h/d?authMechanism=none"]
)
async def test_an_address_that_cannot_be_used_is_told(uri: str) -> None:
    with pytest.raises(DocumentStoreError, match="MongoDB: "):
        await MongoDocumentStore(uri).open()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """A server of our own that keeps what it has over a stop."""
    for started in running("MongoDB", mongodb.VARIABLE, lambda: mongodb.node(tmp_path / "mongodb", durable=True)):
        if not started.ours:
            pytest.skip(f"{started.url} is not ours to stop")
        yield started


@pytest.mark.check
async def test_a_server_goes_away_and_comes_back(node: Node) -> None:
    store = MongoDocumentStore(f"{node.url}/events?serverSelectionTimeoutMS=500", migrate=True)
    await until_there(store.open)  # on a busy machine, the first connection takes longer
    await store.insert("tasks", [{"id": "a", "n": 1}])
    await asyncio.to_thread(node.stop)
    calls = [
        *(store.find("tasks", {"name": Matches(pattern)}) for pattern in ("a", "a|b")),
        *(store.insert("tasks", [{"id": str(number)}, {"id": f"{number}x"}]) for number in range(100)),
        store.update("tasks", {"id": "a"}, Update(max={"n": 1})),
        store.update("tasks", {}, Update(max={"n": 1}), many=True),
        store.find_and_update("tasks", {"id": "a"}, Update(max={"n": 1})),
        store.count("tasks", {}),
        store.count_by("tasks", {}, ["n"]),
        store.delete("tasks", {}),
        store.collections(),
    ]
    for error in await asyncio.gather(*calls, return_exceptions=True):
        assert isinstance(error, DocumentStoreBusy)
        assert error.retry_after >= 1
    await asyncio.to_thread(node.start)
    assert await until_there(lambda: store.find("tasks", {})) == [{"id": "a", "n": 1}]
    assert await store.update("tasks", {"id": "a"}, Update(max={"n": 1})) == 1
    await store.close()


async def until_there(ask: Callable[[], Awaitable[T]]) -> T:
    while True:
        try:
            return await ask()
        except DocumentStoreBusy:
            await asyncio.sleep(0.05)
