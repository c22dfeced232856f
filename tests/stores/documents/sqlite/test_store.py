"""What the SQLite engine adds to the contract: layout, survival, and updates as the dialect applies them."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.stores.documents.base import DocumentStoreError, DuplicateDocument, Index, InvalidDocument
from apiserver.stores.documents.query import Document, Filter, Greater, Less, Update
from apiserver.stores.documents.sqlite.remembered import Remembered
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore
from tests.chance import examples
from tests.stores.documents import strategies
from tests.stores.documents.changing import changed

INDEXES = [Index("things", ("key",)), Index("things", ("deep.key",))]
APART = {"things": ["big"]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "documents.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteDocumentStore]:
    opened = SqliteDocumentStore(path)
    await opened.open()
    yield opened
    await opened.close()


changes = st.lists(st.tuples(strategies.filters, strategies.updates), min_size=1, max_size=3)


@pytest.mark.test
@given(strategies.collections, changes)
@examples(60)
def test_updates_do_what_the_dialect_says(documents: list[Document], changes: list[tuple[Filter, Update]]) -> None:
    async def run(path: Path) -> None:
        store = SqliteDocumentStore(path, indexes=INDEXES, apart=APART)
        await store.open()
        try:
            await store.insert("things", documents)
            model = documents
            for filter, update in changes:
                model = await changed(store, model, filter, update)
                assert await store.find("things", {}, sort=[("id", 1)]) == model
        finally:
            await store.close()

    with TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder) / "documents.db"))


@pytest.mark.anyio
@pytest.mark.parametrize("field", ["hyperparams", "other"])
async def test_varieties_have_all_names_while_documents_change(
    store: SqliteDocumentStore, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    await store.insert("tasks", [{"id": f"{number}", field: {"ab"[number % 2]: 1}} for number in range(4)])
    assert {tuple(document[field]) for document in await store.varieties("tasks", field, {})} == {("a",), ("b",)}
    with monkeypatch.context() as patch:  # as if the answer had been found just before what follows
        patch.setattr(Remembered, "changed", lambda *_: None)
        await store.update("tasks", {"id": "1"}, Update(set={field: {"c": 1}}))
        await store.update("tasks", {"id": "0"}, Update(set={field: {"b": 1}}))
    found = await store.varieties("tasks", field, {})
    assert {tuple(document[field]) for document in found} == {("a",), ("b",), ("c",)}


@pytest.mark.test
def test_what_was_acknowledged_survives_kill_9(path: Path) -> None:
    command = [sys.executable, "-m", "tests.stores.documents.sqlite.writer", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        for _ in range(700):
            writer.stdout.readline()
        writer.kill()
        last = max([699, *(int(line) for line in writer.stdout.read().splitlines()[:-1])])
    numbers, kept = asyncio.run(written(path))
    assert numbers >= {str(number) for number in range(last + 1)}
    assert kept is not None
    assert kept["n"] >= last
    assert kept["last_metrics"][f"m{kept['n'] % 50}"] == kept["n"]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


async def written(path: Path) -> tuple[set[str], Document | None]:
    """All ids, and the document that changes all the time, as a new process finds them."""
    store = SqliteDocumentStore(path)
    await store.open()
    numbers = {document["id"] for document in await store.find("tasks", {}, projection=["id"])}
    kept = await store.find_one("tasks", {"id": "last"})
    await store.close()
    return numbers, kept


@pytest.mark.anyio
async def test_indexes_and_fields_kept_apart_may_come_later(path: Path) -> None:
    documents: list[Document] = [{"id": str(n), "key": n % 3, "big": {"n": n}, "more": [n]} for n in range(20)]
    for indexes, apart in [([], {}), (INDEXES, APART), ([], {"things": ["big", "more"]}), ([], {})]:
        store = SqliteDocumentStore(path, indexes=indexes, apart=apart)
        await store.open()
        if not await store.count("things", {}):
            await store.insert("things", documents)
        assert await store.find("things", {}, sort=[("id", 1)]) == sorted(documents, key=lambda each: str(each["id"]))
        assert await store.count("things", {"key": 1, "big.n": Greater(9), "more": Less(15)}) == 2
        assert await store.update("things", {"id": "0"}, Update(set={"key": 0, "more": [0]})) == 1
        await store.close()


@pytest.mark.anyio
async def test_a_unique_index_that_comes_too_late_is_told(path: Path) -> None:
    store = SqliteDocumentStore(path, indexes=[])
    await store.open()
    await store.insert("things", [{"id": "1", "key": 1}, {"id": "2", "key": 1}])
    await store.close()
    store = SqliteDocumentStore(path, indexes=[Index("things", ("key",), unique=True)])
    await store.open()
    with pytest.raises(DuplicateDocument, match="key"):
        await store.count("things", {})
    await store.close()


@pytest.mark.anyio
async def test_an_index_is_unique_only_while_declared_so(path: Path) -> None:
    for unique in (True, False):
        store = SqliteDocumentStore(path, indexes=[Index("things", ("key",), unique=unique)])
        await store.open()
        await store.insert("things", [{"id": f"{unique}", "key": 1}])
        await store.close()


@pytest.mark.anyio
async def test_only_the_columns_that_changed_are_written(store: SqliteDocumentStore, path: Path) -> None:
    await store.insert("tasks", [{"id": "t", "status": "s", "last_metrics": {"m": {"value": 1.5}}}])
    spy = sqlite3.connect(path, isolation_level=None)
    spy.execute('UPDATE tasks SET "apart.last_metrics" = \'{"untouched": 1}\', "key.status" = \'untouched\'')
    spy.close()
    await store.update("tasks", {"id": "t"}, Update(set={"name": "n"}))
    found = await store.find_one("tasks", {"status": "untouched"})
    assert found == {"id": "t", "status": "s", "name": "n", "last_metrics": {"untouched": 1}}


@pytest.mark.anyio
async def test_a_caller_that_gives_up_leaves_the_store_whole(store: SqliteDocumentStore) -> None:
    await store.insert("tasks", [{"id": str(number)} for number in range(100)])
    given_up = asyncio.ensure_future(store.update("tasks", {}, Update(set={"n": 1}), many=True))
    await asyncio.sleep(0)
    given_up.cancel()
    with pytest.raises(asyncio.CancelledError):
        await given_up
    assert await store.update("tasks", {}, Update(set={"m": 1}), many=True) == 100


@pytest.mark.test
@pytest.mark.anyio
async def test_the_log_is_moved_into_the_file_as_it_grows(store: SqliteDocumentStore, path: Path) -> None:
    large = "x" * 500_000
    await store.insert("tasks", [{"id": "t"}])
    for number in range(100):
        await store.update("tasks", {"id": "t"}, Update(set={"script.diff": f"{large}{number}"}))
    assert path.with_name("documents.db-wal").stat().st_size < 25_000_000


@pytest.mark.anyio
async def test_writes_that_wait_for_the_disk(path: Path) -> None:
    store = SqliteDocumentStore(path, fsync=True)
    await store.open()
    await store.insert("tasks", [{"id": "t"}])
    assert await store.update("tasks", {"id": "t"}, Update(max={"n": 1})) == 1
    assert await store.find("tasks", {}) == [{"id": "t", "n": 1}]
    await store.close()


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["", "Tasks", "a b", 'a"', "sqlite_schema;", "1a"])
async def test_odd_names_of_collections_are_refused(store: SqliteDocumentStore, name: str) -> None:
    with pytest.raises(DocumentStoreError, match="cannot be the name of a collection"):
        await store.find(name, {})


@pytest.mark.anyio
async def test_a_store_that_is_not_open_says_so(path: Path) -> None:
    store = SqliteDocumentStore(path)
    with pytest.raises(DocumentStoreError, match="not open"):
        await store.find("tasks", {})
    await store.open()
    await store.close()
    with pytest.raises(DocumentStoreError, match="not open"):
        await store.update("tasks", {"id": "a"}, Update(set={"n": 1}))


@pytest.mark.test
@pytest.mark.anyio
async def test_a_document_cannot_grow_without_end(path: Path) -> None:
    store = SqliteDocumentStore(path, apart=APART)
    await store.open()
    try:
        half, kept = "x" * (9 * 2**20), {"id": "grown", "text": "x" * (9 * 2**20), "big": {"first": 1}}
        await store.insert("things", [kept])
        for change in (Update(set={"more": half}), Update(set={"big": {"first": half, "second": half}})):
            with pytest.raises(InvalidDocument, match="larger than the 17 MB"):
                await store.update("things", {"id": "grown"}, change)
            with pytest.raises(InvalidDocument, match="larger than the 17 MB"):
                await store.find_and_update("things", {"id": "grown"}, change)
        with pytest.raises(InvalidDocument, match="larger than the 17 MB"):
            await store.insert("things", [{"id": "fine"}, {"id": "large", "text": 2 * half}])
        with pytest.raises(InvalidDocument, match="larger than the 17 MB"):
            await store.update("things", {"id": "large"}, Update(set={"text": 2 * half}), upsert={"id": "large"})
        assert await store.find("things", {}) == [kept]
        await store.update("things", {"id": "grown"}, Update(set={"text": "", "big": half}))
    finally:
        await store.close()


@pytest.mark.test
@pytest.mark.anyio
async def test_what_the_server_says_of_series_may_be_larger(path: Path) -> None:
    store = SqliteDocumentStore(path, apart={"things": ["last_metrics"]})
    await store.open()
    try:
        many = {"metric": "x" * (18 * 2**20)}
        await store.insert("things", [{"id": "a", "last_metrics": {}}, {"id": "b", "last_metrics": many}])
        assert await store.update("things", {"id": "a"}, Update(set={"last_metrics": many, "last_iteration": 1})) == 1
        assert await store.find("things", {"last_iteration": 1}) == [
            {"id": "a", "last_metrics": many, "last_iteration": 1}
        ]
    finally:
        await store.close()
