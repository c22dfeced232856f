"""What is remembered of large fields says which documents meet a condition, whatever has changed since."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.stores.documents.base import Document, Filter
from apiserver.stores.documents.dialect.filters import parse_filter
from apiserver.stores.documents.sqlite import SqliteDocumentStore, contents, translate
from apiserver.stores.documents.sqlite.contents import Content
from tests.chance import examples
from tests.stores.documents import strategies

_operands: list[Any] = [*strategies.SINGLES, [], [1], {"a": 1}]
_tests = st.one_of(
    st.builds(
        lambda op, operand: {op: operand},
        st.sampled_from(["$eq", "$ne", "$gt", "$lte"]),
        st.sampled_from(_operands),
    ),
    st.lists(st.sampled_from(_operands), max_size=3).map(lambda operands: {"$in": operands}),
    st.sampled_from(
        [{"$exists": True}, {"$exists": False}, {"$size": 1}, {"$regex": "a"}, {"$gte": 0, "$lt": 2}, {"$all": ["a"]}]
    ),
    st.just({"$elemMatch": {"a": {"$gt": 0}}}),
)
_paths = st.sampled_from(["big", "big.a", "big.a.b", "big.0", "big.0.a", "big.nothing", 'big.q"', "b", "b.a"])


def _filter(path: str, tests: Sequence[Any], how: str) -> Filter:
    return {path: tests[0]} if how == "plain" else {how: [{path: test} for test in tests]}


_filters = st.builds(
    _filter, _paths, st.lists(_tests, min_size=1, max_size=2), st.sampled_from(["plain", "$or", "$and", "$nor"])
)


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[SqliteDocumentStore]:
    store = SqliteDocumentStore(
        folder / "documents.db", indexes=(), apart={"things": ("big",)}, lists={"things": ("b",)}
    )
    await store.open()
    yield store
    await store.close()


async def ids(store: SqliteDocumentStore, filter: Filter) -> list[str]:
    return [one["id"] for one in await store.find("things", filter, projection=["id"], sort=[("id", 1)])]


@pytest.mark.parametrize("few", [1000, 0])
@given(
    documents=strategies.collections,
    filters=st.lists(_filters, min_size=1, max_size=3),
    changed=strategies.collections,
    number=st.integers(0, 6),
)
@examples(100)
def test_a_filter_finds_what_it_matches(
    few: int, documents: list[Document], filters: list[Filter], changed: list[Document], number: int
) -> None:
    async def run(folder: Path) -> None:
        async with opened(folder) as store:
            await store.insert("things", documents)
            there = {one["id"]: one for one in documents}
            for filter in [*filters, {"$and": filters}]:
                expected = sorted(id for id, one in there.items() if parse_filter(filter).matches(one))
                assert await ids(store, filter) == expected
                assert await store.count("things", filter) == len(expected)
            for one in changed[:number]:
                await store.delete("things", {"id": one["id"]})
                await store.insert("things", [one])
                there[one["id"]] = one
            if number % 2:
                await store.delete("things", {"id": "0"})
                del there["0"]
            await store.update("things", {"id": "3"}, {"$set": {"big": {"a": 1}}})
            there["3"] = {**there["3"], "big": {"a": 1}}
            for filter in filters:
                expected = sorted(id for id, one in there.items() if parse_filter(filter).matches(one))
                assert await ids(store, filter) == expected

    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(translate, "_FEW_ROWS", few)
        asyncio.run(run(Path(folder)))


@pytest.mark.anyio
async def test_every_test_of_every_value(tmp_path: Path) -> None:
    values: list[Any] = [*strategies.SINGLES, [], [1, "a"], [None], {"a": 1}, [{"a": 1}]]
    documents: list[Document] = [{"id": f"{place:02}", "big": {"a": value}} for place, value in enumerate(values)]
    documents += [{"id": "none"}, {"id": "other", "big": {"b": 1}}]
    tests: list[Any] = [{op: value} for op in ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte") for value in values]
    tests += [{"$not": {"$gte": 0, "$lt": 2}}, {"$in": [None, 2, "b"]}, {"$nin": [1]}, {"$exists": False}, {"$size": 1}]
    async with opened(tmp_path) as store:
        await store.insert("things", documents)
        for test in tests:
            condition = parse_filter({"big.a": test})
            expected = sorted(one["id"] for one in documents if condition.matches(one))
            assert await ids(store, {"big.a": test}) == expected, test


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is read of large fields: rows, or None for all."""
    rows: list[Any] = []
    original = Content._read

    def noted(self: Content, changed: Any, execute: Any) -> None:
        rows.append(changed)
        original(self, changed, execute)

    monkeypatch.setattr(Content, "_read", noted)
    return rows


@pytest.mark.anyio
async def test_only_what_changed_is_read_again(tmp_path: Path, read: list[Any]) -> None:
    async with opened(tmp_path) as store:
        await store.insert("things", [{"id": f"{number:02}", "big": {"a": number % 2}} for number in range(20)])
        assert len(await ids(store, {"big.a": 1})) == 10
        await store.update("things", {"id": "00"}, {"$set": {"other": 1}})
        assert len(await ids(store, {"big.a": 1})) == 10
        await store.update("things", {"id": "00"}, {"$set": {"big": {"a": 1}}})
        assert len(await ids(store, {"big.a": {"$ne": 0}})) == 11
        assert len(await ids(store, {"$or": [{"id": "00"}, {"big.a": 1}]})) == 11
    assert read == [None, set(), {1}]


@pytest.mark.anyio
async def test_nothing_is_remembered_for_few_of_many(tmp_path: Path, read: list[Any]) -> None:
    async with opened(tmp_path) as store:
        await store.insert("things", [{"id": f"{number:02}", "big": {"a": number % 2}} for number in range(50)])
        assert await ids(store, {"$and": [{"id": {"$in": ["01", "02"]}}, {"big.a": 1}]}) == ["01"]
        assert await ids(store, {"$and": [{"id": "01"}, {"big.a": 1}]}) == ["01"]
        assert read == []
        assert await ids(store, {"$and": [{"id": {"$ne": "01"}}, {"big.a": 1}]}) != []
        assert await ids(store, {"$and": [{"id": {"$in": ["01", "02"]}}, {"big.a": 1}]}) == ["01"]
        assert await ids(store, {"$and": [{"id": "01"}, {"big.a": 1}]}) == ["01"]
    assert read == [None, set()]


@pytest.mark.anyio
async def test_too_much_is_not_remembered(tmp_path: Path, read: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "_LARGEST", 1000)
    async with opened(tmp_path) as store:
        await store.insert("things", [{"id": f"{number:02}", "big": {"a": "x" * 99, "b": 1}} for number in range(20)])
        assert len(await ids(store, {"big.a": "x" * 99})) == 20  # once
        await store.update("things", {}, {"$set": {"big.a": "y" * 999}}, many=True)
        for _ in range(2):
            assert len(await ids(store, {"big.a": "y" * 999})) == 20
        assert len(await ids(store, {"big.b": 1})) == 20
    assert read == [None, set(range(1, 21)), None]


@pytest.mark.anyio
async def test_the_paths_asked_for_last_are_remembered(
    tmp_path: Path, read: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "_MOST", 2)
    async with opened(tmp_path) as store:
        await store.insert("things", [{"id": "1", "big": {"a": 1, "b": 2, "c": 3}}])
        for name in "abacab":
            await ids(store, {f"big.{name}": 1})
    assert [rows is None for rows in read] == [True, True, False, True, False, True]


@pytest.mark.anyio
@pytest.mark.parametrize("few", [1000, 0])
@pytest.mark.parametrize("page", [{}, {"limit": 5}, {"sort": [("big.a", 1)], "limit": 5}])
async def test_a_document_that_no_longer_matches_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int, page: dict[str, Any]
) -> None:
    loop, rows = asyncio.get_running_loop(), Content.rows
    monkeypatch.setattr(translate, "_FEW_ROWS", few)
    async with opened(tmp_path) as store:
        await store.insert("things", [{"id": str(number), "big": {"a": number}} for number in range(4)])

        def slow(*args: Any) -> Any:
            met = rows(*args)
            change = store.update("things", {"id": "3"}, {"$set": {"big": {"a": 0}}})
            asyncio.run_coroutine_threadsafe(change, loop).result(10)
            return met

        monkeypatch.setattr(Content, "rows", slow)
        found = await store.find("things", {"big.a": {"$gt": 1}}, **page)
    assert [one["id"] for one in found] == ["2"]


@pytest.mark.anyio
async def test_what_is_nowhere_any_more_is_forgotten(tmp_path: Path, read: list[Any]) -> None:
    async with opened(tmp_path) as store:
        await store.insert("things", [{"id": str(number), "big": {"a": number}} for number in range(4)])
        for number in range(100, 109):
            await store.update("things", {"id": "0"}, {"$set": {"big": {"a": number}}})
            assert await ids(store, {"big.a": number}) == ["0"]
    assert [rows is None for rows in read] == [True] + 7 * [False] + [True]


@pytest.mark.anyio
async def test_of_many_paths_some_are_remembered(tmp_path: Path, read: list[Any]) -> None:
    async with opened(tmp_path) as store:
        await store.insert("things", [{"id": str(number), "big": {"a": number}} for number in range(4)])
        nothing = {f"big.{name}": {"$exists": False} for name in "bcdefghijk"}
        assert await ids(store, {**nothing, "big.a": {"$gt": 1}}) == ["2", "3"]
    assert len(read) == 4


@pytest.mark.anyio
async def test_all_paths_together_are_bounded(tmp_path: Path, read: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "_LARGEST", 250)
    async with opened(tmp_path) as store:
        await store.insert("things", [{"id": "1", "big": {name: name * 100 for name in "abcd"}}])
        for name in "abcdcba":
            assert await ids(store, {f"big.{name}": name * 100}) == ["1"]
    assert [rows is None for rows in read] == [True, True, True, True, False, False, True]


@pytest.mark.anyio
async def test_a_path_with_too_much_takes_nothing_from_others(
    tmp_path: Path, read: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "_LARGEST", 250)
    async with opened(tmp_path) as store:
        await store.insert("things", [{"id": "1", "big": {"a": "a" * 300, "b": 1, "c": 1}}])
        for name, value in [("b", 1), ("a", "a" * 300), ("c", 1), ("a", "a" * 300), ("b", 1), ("c", 1)]:
            assert await ids(store, {f"big.{name}": value}) == ["1"]
    assert [rows is None for rows in read] == [True, True, True, False, False]
