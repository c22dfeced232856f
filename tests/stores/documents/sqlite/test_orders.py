"""Pages of documents whose order is kept are those of sorting them all, whatever has changed since."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.stores.documents.base import Document, DocumentStoreError, Filter
from apiserver.stores.documents.dialect.filters import parse_filter
from apiserver.stores.documents.dialect.sorts import in_order, parse_sort
from apiserver.stores.documents.sqlite import SqliteDocumentStore, orders, pages
from apiserver.stores.documents.sqlite.orders import Order, Read
from tests.chance import examples

NUMERIC = "hyperparams"
FIELD = f"{NUMERIC}.p"

_values = st.one_of(
    st.sampled_from([1, "b"]),
    st.none(),
    st.integers(-3, 12),
    st.sampled_from(["", "2", "10", "1e1", "1e999", "b", "é", "a\x00b", "a\x00c", 0.5, -0.5, True, False, [], {}]),
    st.sampled_from([[3, 1], ["b", 2], [{}], {"a": 1}, 2**53, 2**53 + 1, float(2**53)]),
)
_changes = st.lists(st.tuples(st.sampled_from(["set", "delete", "insert"]), st.integers(0, 30), _values), max_size=6)
_filters = st.sampled_from([{}, {"even": True}, {"even": "no"}, {"id": {"$in": ["003", "005", "030"]}}])


def document(number: int, value: Any) -> Document:
    found: Document = {"id": f"{number:03d}", "even": number % 2 == 0, NUMERIC: {"p": value}}
    if value is None and number % 3:
        del found[NUMERIC]["p"]
    return found


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[SqliteDocumentStore]:
    store = SqliteDocumentStore(folder / "documents.db", indexes=(), apart={}, numeric={"tasks": (NUMERIC,)})
    await store.open()
    yield store
    await store.close()


@pytest.mark.parametrize(("few", "look", "furthest"), [(1000, 200, 3000), (2, 3, 9), (1000, 1, 10**6), (0, 1, 0)])
@given(
    values=st.lists(_values, max_size=24),
    rounds=st.lists(_changes, min_size=1, max_size=3),
    fields=st.sampled_from([[FIELD], [FIELD], [FIELD, "id"], ["even"], ["even", FIELD], [FIELD, "even", "id"]]),
    directions=st.tuples(*[st.sampled_from([1, -1])] * 3),
    filter=_filters,
    page=st.tuples(st.integers(0, 5), st.integers(0, 5)),
)
@examples(60)
def test_pages_are_those_of_the_whole_order(
    few: int,
    look: int,
    furthest: int,
    values: list[Any],
    rounds: list[Any],
    fields: list[str],
    directions: tuple[int, ...],
    filter: Filter,
    page: tuple[int, int],
) -> None:
    async def run(folder: Path) -> None:
        there = {one["id"]: one for one in (document(*pair) for pair in enumerate(values))}
        sort, (skip, limit) = list(zip(fields, directions, strict=False)), page
        async with opened(folder) as store:
            await store.insert("tasks", list(there.values()))
            await store.find("tasks", {}, sort=sort, limit=1)
            for changes in [[], *rounds]:
                for change, number, value in changes:
                    new = document(number, value)
                    if change == "delete":
                        there.pop(new["id"], None)
                        await store.delete("tasks", {"id": new["id"]})
                    elif new["id"] in there:
                        there[new["id"]] = new
                        await store.update("tasks", {"id": new["id"]}, {"$set": {NUMERIC: new[NUMERIC]}})
                    elif change == "insert":
                        there[new["id"]] = new
                        await store.insert("tasks", [new])
                matching = [one for one in there.values() if parse_filter(filter).matches(one)]
                wanted = in_order(matching, parse_sort(sort, (NUMERIC,)))[skip:][:limit]
                assert await store.find("tasks", filter, sort=sort, skip=skip, limit=limit) == wanted

    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(orders, "_FEW", few)
        patch.setattr(orders, "A_LOOK", look)
        patch.setattr(pages, "FURTHEST", furthest)
        asyncio.run(run(Path(folder)))


class Asked:
    """Which rows' values an order asked for, one call after another."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows: list[Collection[int] | None] = []
        original = Order.rows

        def rows(order: Order, read: Read) -> Any:
            def asked(rows: Collection[int] | None) -> Any:
                self.rows.append(rows)
                return read(rows)

            return original(order, asked)

        monkeypatch.setattr(Order, "rows", rows)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(monkeypatch)


@pytest.mark.anyio
async def test_only_what_changed_is_read_again(tmp_path: Path, asked: Asked) -> None:
    async with opened(tmp_path) as store:
        await store.insert("tasks", [document(number, number) for number in range(200)])

        async def newest() -> list[str]:
            found = await store.find("tasks", {"even": True}, sort=[(FIELD, -1)], limit=3)
            return [one["id"] for one in found]

        assert await newest() == ["198", "196", "194"]
        await store.update("tasks", {"id": "010"}, {"$set": {"name": "x"}})
        assert await newest() == ["198", "196", "194"]
        await store.update("tasks", {"id": "010"}, {"$set": {FIELD: "1000"}})
        assert await newest() == ["010", "198", "196"]
        await store.delete("tasks", {"id": "010"})
        assert await newest() == ["198", "196", "194"]
    assert asked.rows == [None, {11}, {11}]


@pytest.mark.anyio
async def test_no_order_is_made_for_few_of_many(tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(tmp_path) as store:
        await store.insert("tasks", [{**document(number, -number), "rare": number < 9} for number in range(100)])
        rare = await store.find("tasks", {"rare": True}, sort=[(FIELD, 1)], limit=2)
        assert ([one["id"] for one in rare], asked.rows) == (["008", "007"], [])
        monkeypatch.setattr(orders, "_MOST_VALUES", 99)
        every = await store.find("tasks", {}, sort=[(FIELD, 1)], limit=2)
        assert ([one["id"] for one in every], asked.rows) == (["099", "098"], [])


@pytest.mark.anyio
async def test_orders_are_forgotten_when_they_are_many(
    tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orders, "_MOST_VALUES", 25)
    async with opened(tmp_path) as store:
        await store.insert("tasks", [document(number, number) for number in range(10)])
        for name in ("p", "q", "p", "r", "p", "q"):
            await store.find("tasks", {}, sort=[(f"{NUMERIC}.{name}", 1)], limit=2)
    assert len(asked.rows) == 4  # of q twice


@pytest.mark.anyio
async def test_too_much_text_is_not_kept(tmp_path: Path, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "_MOST_VALUES", 20)
    async with opened(tmp_path) as store:
        await store.insert("tasks", [document(number, str(number)) for number in range(10)])

        async def newest() -> str:
            (found,) = await store.find("tasks", {}, sort=[(FIELD, -1)], limit=1)
            return str(found["id"])

        assert await newest() == "009"
        await store.update("tasks", {"id": "003"}, {"$set": {FIELD: "9" * 2000}})
        assert [await newest() for _ in range(2)] == ["003", "003"]
    assert asked.rows == [None, {4}]


@pytest.mark.anyio
async def test_a_row_that_is_anothers_by_now_is_on_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, wanted = asyncio.get_running_loop(), orders._wanted

    async def replace(store: SqliteDocumentStore) -> None:
        await store.delete("tasks", {"id": "009"})
        await store.insert("tasks", [{**document(10, 99), "even": "no"}])

    async with opened(tmp_path) as store:
        await store.insert("tasks", [document(number, number) for number in range(10)])

        def slow(*args: Any) -> Any:
            page = wanted(*args)
            asyncio.run_coroutine_threadsafe(replace(store), loop).result(10)
            return page

        monkeypatch.setattr(orders, "_wanted", slow)
        found = await store.find("tasks", {"even": {"$in": [True, False]}}, sort=[(FIELD, -1)], limit=2)
    assert [one["id"] for one in found] == ["008", "007"]


@pytest.mark.anyio
async def test_an_order_that_could_not_be_read_is_read_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(tmp_path) as store:
        await store.insert("tasks", [document(number, number) for number in range(10)])
        await store.find("tasks", {}, sort=[(FIELD, 1)], limit=1)
        await store.update("tasks", {"id": "009"}, {"$set": {FIELD: -1}})

        def broken(self: Order, *_: object) -> None:
            raise DocumentStoreError("interrupted")

        with monkeypatch.context() as patch:
            patch.setattr(Order, "_move", broken)
            with pytest.raises(DocumentStoreError):
                await store.find("tasks", {}, sort=[(FIELD, 1)], limit=1)
        assert [one["id"] for one in await store.find("tasks", {}, sort=[(FIELD, 1)], limit=1)] == ["009"]


def _there(rows: orders.Rows | None) -> list[int]:
    assert rows is not None
    return list(map(int, rows))


def test_what_changes_while_it_is_read_is_read_again() -> None:
    order = Order(parse_sort([("f", 1)]))
    values = {1: ("a", 1), 2: ("b", 2)}
    inside, changed = threading.Event(), threading.Event()

    def slow(rows: Collection[int] | None) -> list[tuple[int, str, Any]]:
        found = [(row, *value) for row, value in values.items() if rows is None or row in rows]
        inside.set()
        assert changed.wait(10)
        return found

    def change() -> None:
        assert inside.wait(10)
        values[1] = ("a", 3)
        order.unread.add([1])
        changed.set()

    writer = threading.Thread(target=change)
    writer.start()
    assert _there(order.rows(slow)) == [1, 2]
    writer.join()
    assert _there(order.rows(slow)) == [2, 1]
