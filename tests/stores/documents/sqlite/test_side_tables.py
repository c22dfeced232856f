"""Documents are found and sorted the same with side tables as without, whatever changes; the file keeps them."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.stores.documents.base import DocumentStoreBusy, InvalidFilter
from apiserver.stores.documents.dialect.filters import meets, parse_filter
from apiserver.stores.documents.dialect.patterns import compile_pattern
from apiserver.stores.documents.dialect.sorts import Term, in_order, parse_sort
from apiserver.stores.documents.query import (
    AllOf,
    AnyOf,
    AsNumber,
    AtLeast,
    AtMost,
    Both,
    Document,
    Equal,
    Filter,
    FirstNumber,
    Greater,
    HasAll,
    HasSize,
    In,
    Less,
    Matches,
    NoneOf,
    NotIn,
    Place,
    Sort,
    Unequal,
    Update,
)
from apiserver.stores.documents.sqlite import rendering, translate
from apiserver.stores.documents.sqlite.bounds import SqliteBounds
from apiserver.stores.documents.sqlite.connections import Connections
from apiserver.stores.documents.sqlite.side_tables import (
    Names,
    Side,
    Sorted,
    Texts,
    Values,
    in_one_case,
    parse_side,
    text_of,
)
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore
from apiserver.stores.documents.sqlite.table import Table
from apiserver.stores.documents.sqlite.upkeep import Upkeep
from tests.chance import examples
from tests.stores.documents import strategies
from tests.stores.documents.sqlite.test_translate import sorts_by_an_object

NUMERIC = ("n",)
VALUE = "big.value"
BY_VALUE: Sort = [(VALUE, -1)]


#: Side tables are made for any number of documents.
ALWAYS = SqliteBounds(many=-1)


@asynccontextmanager
async def opened(folder: Path, bounds: SqliteBounds = ALWAYS) -> AsyncIterator[SqliteDocumentStore]:
    documents = SqliteDocumentStore(
        folder / "documents.db",
        indexes=(),
        apart={"things": ("big",)},
        lists={"things": ("b",)},
        numeric={"things": NUMERIC},
        bounds=bounds,
    )
    await documents.open()
    yield documents
    await documents.close()


async def ids(documents: SqliteDocumentStore, filter: Filter, sort: Sort = (("id", 1),), limit: int = 9) -> list[str]:
    return [one["id"] for one in await documents.find("things", filter, sort=sort, limit=limit)]


def there(folder: Path) -> list[tuple[Side, str]]:
    """The side tables that the file says there are."""
    with closing(sqlite3.connect(folder / "documents.db")) as connection:
        found = connection.execute('SELECT holds, state FROM "side:tables" ORDER BY number')
        return [(parse_side(holds), state) for holds, state in found]


def numbered(count: int) -> list[Document]:
    return [{"id": f"{number:03}", "big": {"value": number}} for number in range(count)]


def meant(documents: dict[str, Document], filter: Filter) -> list[Document]:
    condition = parse_filter(filter)
    return [documents[id] for id in sorted(documents) if meets(condition)(documents[id])]


# The same answers


_operands: list[Any] = [*strategies.SINGLES, [], [1], {"a": 1}, 2**64, "x" * 201]
_tests = st.one_of(
    st.builds(
        lambda test, operand: test(operand),
        st.sampled_from([Equal, Unequal, Greater, AtMost]),
        st.sampled_from(_operands),
    ),
    st.lists(st.sampled_from(_operands), max_size=3).map(In),
    st.sampled_from([HasSize(1), AsNumber(Less(1)), Matches("a"), Both(AtLeast(0), Less(2)), HasAll(["a"])]),
)
_paths = st.sampled_from(["big", "big.a", "big.a.b", "big.0", "big.0.a", "a", "a.b", 'big.q"', "b", "b.a"])


_first = st.sampled_from(
    [FirstNumber(paths) for paths in (("big.a", "big.b"), ("big.a.b", "big.0.a", "big.a"), ("a.b", "a"), ("n", "n.a"))]
)
_places = _paths | _first


def _filter(path: Place, tests: Sequence[Any], combined: Callable[[Sequence[Filter]], Filter] | None) -> Filter:
    return {path: tests[0]} if combined is None else combined([{path: test} for test in tests])


_filters = st.builds(
    _filter, _places, st.lists(_tests, min_size=1, max_size=2), st.sampled_from([None, AnyOf, AllOf, NoneOf])
)
_pattern_filters = st.builds(
    lambda pattern, paths: AnyOf([{path: Matches(pattern, any_case=True)} for path in paths]),
    st.sampled_from(["a", "A\n", "aa", "é"]),
    st.sets(strategies.paths, min_size=1).map(sorted),
)
_fields = st.sampled_from(["big.a", "big.a.b", "a", "n", "n.a", "b", "key", "big"])
_sorts = st.lists(st.tuples(_fields | _first, st.sampled_from([1, -1])), min_size=1, max_size=2)
_numbers = st.sampled_from(["1", "10", "2", "1e1", "1e999", 3, 2.5, True, "", None, ["4", 1], 2**53, 2**53 + 1])


@pytest.mark.check
@pytest.mark.parametrize(("few", "look", "furthest"), [(1000, 200, 3000), (0, 1, 0), (0, 2, 10**6), (1, 1, 1)])
@given(
    documents=strategies.collections,
    numbers=st.lists(_numbers, min_size=6, max_size=6),
    filters=st.lists(_filters | _pattern_filters, min_size=1, max_size=3),
    sort=_sorts,
    page=st.tuples(st.integers(0, 3), st.integers(1, 5) | st.none()),
    changed=strategies.collections,
    changes=st.lists(st.sampled_from(["replace", "set", "delete"]), min_size=6, max_size=6),
)
@examples(30)
def test_what_is_found_is_what_the_dialect_says(
    few: int,
    look: int,
    furthest: int,
    documents: list[Document],
    numbers: list[Any],
    filters: list[Filter],
    sort: Sort,
    page: tuple[int, int | None],
    changed: list[Document],
    changes: list[str],
) -> None:
    terms, (skip, limit) = parse_sort(sort, NUMERIC), page
    filters = [{}, *filters, AllOf(filters)]

    async def hold(documents: SqliteDocumentStore, model: dict[str, Document]) -> None:
        for filter in filters:
            found = meant(model, filter)
            assert await documents.find("things", filter, sort=[("id", 1)]) == found
            assert await documents.count("things", filter) == len(found)
            if not any(sorts_by_an_object(document, term) for document in model.values() for term in terms):
                end = None if limit is None else skip + limit
                asked = await documents.find("things", filter, sort=sort, skip=skip, limit=limit)
                assert asked == in_order(found, terms)[skip:end]

    async def run(folder: Path) -> None:
        model = {one["id"]: {**one, "n": number} for one, number in zip(documents, numbers, strict=True)}
        async with opened(folder, bounds) as opened_store:
            await opened_store.insert("things", list(model.values()))
            await hold(opened_store, model)
            for one, change in zip(changed, changes, strict=True):
                if change != "set":
                    await opened_store.delete("things", {"id": one["id"]})
                    del model[one["id"]]
                if change == "replace":
                    await opened_store.insert("things", [one])
                    model[one["id"]] = one
                if change == "set":
                    for name in ("a", "big"):
                        await opened_store.update("things", {"id": one["id"]}, Update(set={name: one.get(name)}))
                        model[one["id"]] = {**model[one["id"]], name: one.get(name)}
            await hold(opened_store, model)

    bounds = replace(ALWAYS, few=few, first_look=look, furthest=furthest, documents_at_once=2)
    with TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


@pytest.mark.test
@pytest.mark.anyio
async def test_every_test_of_every_value(tmp_path: Path) -> None:
    values: list[Any] = [*strategies.SINGLES, [], [1, "a"], [None], {"a": 1}, [{"a": 1}], "x" * 200, "x" * 201]
    documents: list[Document] = [{"id": f"{place:02}", "big": {"a": value}} for place, value in enumerate(values)]
    documents += [{"id": "none"}, {"id": "other", "big": {"b": 1}}]
    tests: list[Any] = [test(value) for test in strategies.COMPARISONS for value in values]
    tests += [Both(AtLeast(0), Less(2)), In([None, 2, "b"]), NotIn([1]), HasSize(1)]
    tests += [AsNumber(test(number)) for test in strategies.NUMERIC for number in (0, 0.5, -1)]
    async with opened(tmp_path) as documents_store:
        await documents_store.insert("things", documents)
        for test in tests:
            condition = parse_filter({"big.a": test})
            expected = sorted(one["id"] for one in documents if meets(condition)(one))
            assert await ids(documents_store, {"big.a": test}, limit=99) == expected, test
    assert there(tmp_path) == [(Values(("big", "a")), "ready")]


_text = st.text(st.sampled_from('ksKSéÉ\u212a\u017fßẞσςΣİı"\\\x00\n/,.[{é😀x'), max_size=5)
_held = st.one_of(
    _text,
    st.lists(_text | st.none() | st.lists(_text, max_size=2), max_size=3),
    st.fixed_dictionaries({"b": _text | st.lists(_text, max_size=2)}),
    st.lists(st.fixed_dictionaries({"b": _text | st.lists(_text, max_size=2)}), max_size=2),
)
_pieces = st.sampled_from(
    ["k", "s", "K", "x", r"\.", "/", r"\"", r"\\", ",", ".", "x+", "s?", "^", "É", "ß", "ς", "ss"]
)


@pytest.mark.test
@pytest.mark.parametrize("few", [0, 1000])
@given(
    texts=st.lists(st.fixed_dictionaries({"a": _held, "b": st.lists(_text, max_size=2)}), min_size=1, max_size=5),
    pattern=st.lists(_pieces, min_size=1, max_size=4).map("".join),
    options=st.sampled_from(["", "i"]),
    paths=st.sets(st.sampled_from(["id", "a", "b", "a.b"]), min_size=1).map(sorted),
)
@examples(30)
def test_a_pattern_is_found_wherever_it_is(
    few: int, texts: list[Document], pattern: str, options: str, paths: list[str]
) -> None:
    async def run(folder: Path) -> None:
        documents = {f"s{place}": {"id": f"s{place}", **text} for place, text in enumerate(texts)}
        async with opened(folder, replace(ALWAYS, few=few)) as documents_store:
            await documents_store.insert("things", list(documents.values()))
            filter = AnyOf([{path: Matches(pattern, any_case=options == "i")} for path in paths])
            for asked in (filter, NoneOf([filter])):
                expected = [one["id"] for one in meant(documents, asked)]
                assert await ids(documents_store, asked) == expected
                assert await documents_store.count("things", asked) == len(expected)

    with TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


@pytest.mark.test
def test_what_differs_in_case_only_is_the_same_text() -> None:
    for one in filter(lambda one: one != one.lower() or one != one.upper(), map(chr, range(0x11000))):
        for other in {one.lower(), one.upper(), one.title(), one.casefold()}:
            if compile_pattern("n", other, any_case=True)(one):
                assert in_one_case(other) in in_one_case(one)


@pytest.mark.anyio
async def test_values_that_json_has_not_are_null(tmp_path: Path) -> None:
    async with opened(tmp_path) as documents:
        await documents.insert("things", numbered(3))
        assert await ids(documents, {}, [(VALUE, 1)]) == ["000", "001", "002"]
        await documents.update("things", {"id": "000"}, Update(set={VALUE: float("inf")}))
        await documents.update("things", {"id": "001"}, Update(set={VALUE: 2**64 - 1}))
        await documents.insert("things", [{"id": "nan", "big": {"value": float("nan")}}])
        assert await ids(documents, {}, [(VALUE, 1)]) == ["002", "001", "000", "nan"]
        assert await ids(documents, {VALUE: None}) == ["000", "nan"]
        assert await ids(documents, {VALUE: Greater(5)}) == ["001"]


# How side tables come and go


SIDES: list[Side] = [
    Sorted((Term(("a", 'q".'), True, True), Term(("id",)))),
    Values(("a", "b")),
    Names("a"),
    Texts((("a",), ("b", "c"))),
]


@pytest.mark.parametrize("side", SIDES, ids=lambda side: side.kind)
def test_what_a_side_table_holds_is_kept_as_text(side: Side) -> None:
    assert parse_side(text_of(side)) == side


@pytest.fixture
def filled(monkeypatch: pytest.MonkeyPatch) -> list[Side]:
    """The side tables that are filled."""
    sides: list[Side] = []
    original = Upkeep.fill

    def fill(self: Upkeep, table: Table, side: Side) -> None:
        sides.append(side)
        original(self, table, side)

    monkeypatch.setattr(Upkeep, "fill", fill)
    return sides


@pytest.mark.anyio
async def test_side_tables_outlive_a_restart(tmp_path: Path, filled: list[Side]) -> None:
    pattern: Filter = AnyOf([{path: Matches("first")} for path in ("id", "a")])
    async with opened(tmp_path) as documents:
        await documents.insert("things", [*numbered(20), {"id": "text", "a": "the first"}])
    for last in ("019", "new"):
        async with opened(tmp_path) as documents:
            assert (await ids(documents, {}, BY_VALUE))[0] == last
            assert await ids(documents, {VALUE: 7}) == ["007"]
            assert await ids(documents, pattern) == ["text"]
            assert len(await documents.varieties("things", "big", {})) == 2
            if last == "019":
                await documents.insert("things", [{"id": "new", "big": {"value": 99}}])
    assert {side.kind for side in filled} == {"sorted", "values", "texts", "names"}
    assert len(filled) == 4


@pytest.mark.anyio
async def test_the_first_number_at_some_paths_is_told_by_side_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents are read only where a list or the like comes before a number."""
    place, read = FirstNumber(("big.a", "big.b", "big.c")), []
    documents: list[Document] = [
        {"id": "0", "big": {"a": 3}},
        {"id": "1", "big": {"a": "text", "b": 1}},
        {"id": "2", "big": {"c": 2.5}},
        {"id": "3", "big": {"a": 4, "b": [9]}},
        {"id": "4", "big": {"b": [0], "c": 9}},
        {"id": "5"},
    ]

    def watched(function: Callable[..., Any]) -> Callable[..., Any]:
        def watching(*arguments: Any) -> Any:
            value = arguments[-1]
            if isinstance(value, dict):
                read.append(value)
                return function(*arguments)
            return watched(function(*arguments))

        return watching

    for module, name in ((translate, "sort_value"), (rendering, "meets")):
        monkeypatch.setattr(module, name, watched(getattr(module, name)))
    async with opened(tmp_path) as store:
        await store.insert("things", documents)
        assert await ids(store, {}, [(place, 1)]) == ["4", "1", "2", "0", "3", "5"]
        assert await ids(store, {}, [(place, -1)]) == ["3", "0", "2", "1", "4", "5"]
        assert await ids(store, {place: Less(3)}) == ["1", "2", "4"]
        assert await store.count("things", NoneOf([{place: AtLeast(1)}, {place: None}])) == 1
    assert [document["big"] for document in read] == [{"b": [0], "c": 9}] * len(read)
    assert read
    assert [side for side, _ in there(tmp_path)] == [Values(("big", name)) for name in "abc"]


@pytest.mark.anyio
async def test_no_side_tables_are_made_of_too_many_paths(tmp_path: Path) -> None:
    place = FirstNumber(tuple(f"big.{name}" for name in "abcde"))
    async with opened(tmp_path) as store:
        await store.insert("things", [{"id": name, "big": {name: ord(name)}} for name in "abcde"])
        assert await ids(store, {place: Less(100)}, [(place, -1)]) == ["c", "b", "a"]
    assert there(tmp_path) == []


@pytest.mark.anyio
async def test_for_few_documents_no_side_table_is_made(tmp_path: Path) -> None:
    async with opened(tmp_path, SqliteBounds(many=10)) as documents:
        await documents.insert("things", [{**one, "b": ["rare"] if one["id"] < "009" else []} for one in numbered(20)])
        assert (await ids(documents, {"b": "rare"}, BY_VALUE))[:2] == ["008", "007"]
        assert there(tmp_path) == []
        assert (await ids(documents, {}, BY_VALUE))[:2] == ["019", "018"]
    assert [state for _, state in there(tmp_path)] == ["ready"]


@pytest.mark.anyio
async def test_the_least_used_makes_room(tmp_path: Path) -> None:
    async with opened(tmp_path, replace(ALWAYS, sides=2)) as documents:
        await documents.insert("things", numbered(5))
        for name in ("p", "q", "p", "r"):
            await ids(documents, {f"big.{name}": 1})
        await documents.update("things", {"id": "001"}, Update(set={"big.q": 1}))
        assert await ids(documents, {"big.q": 1}) == ["001"]
    assert [side for side, _ in there(tmp_path)] == [Values(("big", "r")), Values(("big", "q"))]
    with closing(sqlite3.connect(tmp_path / "documents.db")) as connection:
        assert len(connection.execute("SELECT 1 FROM sqlite_schema WHERE name GLOB 'side:[0-9]'").fetchall()) == 2


@pytest.mark.anyio
async def test_too_much_text_is_not_kept(tmp_path: Path, filled: list[Side]) -> None:
    async with opened(tmp_path, replace(ALWAYS, side_characters=1000)) as documents:
        await documents.insert("things", [{"id": f"{place}", "a": f"{place}" * 200} for place in range(9)])
        for _ in range(2):
            assert (await ids(documents, {}, [("a", -1)]))[:2] == ["8", "7"]
        await documents.update("things", {"id": "0"}, Update(set={"a": "9"}))
        assert (await ids(documents, {}, [("a", -1)]))[:2] == ["0", "8"]
        assert await documents.collections() == ["things"]
    assert ([state for _, state in there(tmp_path)], len(filled)) == (["large"], 1)


@pytest.mark.anyio
async def test_documents_change_while_a_side_table_is_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, original = asyncio.get_running_loop(), Sorted.of
    read: list[str] = []

    async def change(documents: SqliteDocumentStore) -> None:
        await documents.update("things", {"id": "001"}, Update(set={VALUE: 100}))
        await documents.delete("things", {"id": "002"})
        await documents.delete("things", {"id": "011"})
        await documents.insert("things", [{"id": "new", "big": {"value": 50}}])

    async with opened(tmp_path, replace(ALWAYS, documents_at_once=4)) as documents:
        await documents.insert("things", numbered(12))

        def slow(self: Sorted, document: Document) -> Any:
            read.append(document["id"])
            if read == ["000"]:
                asyncio.run_coroutine_threadsafe(change(documents), loop).result(10)
            return original(self, document)

        monkeypatch.setattr(Sorted, "of", slow)
        by_value = await ids(documents, {}, BY_VALUE, 20)
        assert by_value == ["001", "new", "010", "009", "008", "007", "006", "005", "004", "003", "000"]
        await documents.delete("things", {"id": In(["001", "new"])})
    with closing(sqlite3.connect(tmp_path / "documents.db")) as connection:
        assert connection.execute('SELECT count(*) FROM "side:1"').fetchone() == (9,)


@pytest.mark.anyio
async def test_a_full_disk_costs_time_but_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(tmp_path) as documents:
        await documents.insert("things", numbered(12))

        write, writes = Connections.write, count(1)

        def full(self: Connections, *, spare_reserve: bool = False) -> Any:
            if spare_reserve and next(writes) > 1:  # the first makes the side table
                raise DocumentStoreBusy("the disk is full")
            return write(self, spare_reserve=spare_reserve)

        with monkeypatch.context() as patch:
            patch.setattr(Connections, "write", full)
            assert (await ids(documents, {}, BY_VALUE))[:2] == ["011", "010"]
        await documents.update("things", {"id": "000"}, Update(set={VALUE: 100}))
        assert [state for _, state in there(tmp_path)] == ["filling"]
        assert (await ids(documents, {}, BY_VALUE))[:2] == ["000", "011"]
    assert [state for _, state in there(tmp_path)] == ["ready"]


@pytest.mark.anyio
async def test_a_change_that_fails_changes_no_side_table(tmp_path: Path) -> None:
    async with opened(tmp_path) as documents:
        await documents.insert("things", [*numbered(3), {"id": "003", "big": {"value": 1, "list": 1}}])
        assert await ids(documents, {VALUE: 1}) == ["001", "003"]
        with pytest.raises(InvalidFilter, match="no list"):
            await documents.update("things", {}, Update(set={VALUE: 1}, push={"big.list": [1]}), many=True)
        assert await ids(documents, {VALUE: 1}) == ["001", "003"]


@pytest.mark.anyio
async def test_a_new_layout_of_a_collection_keeps_its_side_tables(tmp_path: Path, filled: list[Side]) -> None:
    async with opened(tmp_path) as documents:
        await documents.insert("things", numbered(9))
        await documents.delete("things", {"id": "002"})
        assert (await ids(documents, {}, BY_VALUE))[:2] == ["008", "007"]
    for apart in ((), ("big", "more")):
        documents = SqliteDocumentStore(tmp_path / "documents.db", indexes=(), apart={"things": apart}, bounds=ALWAYS)
        await documents.open()
        assert (await ids(documents, {}, BY_VALUE))[:2] == ["008", "007"]
        await documents.close()
    assert len(filled) == 1


# Large texts


@pytest.mark.anyio
@pytest.mark.parametrize("some_bytes", [1, 10**9])
async def test_large_texts_are_sorted_by_their_beginnings(tmp_path: Path, some_bytes: int) -> None:
    bounds = replace(ALWAYS, bytes_at_once=some_bytes)  # 1: each document is put into the side table by itself
    text = "é" * 1000
    values = {"a": text + "z", "b": text + "a", "c": text[:-1] + "z", "d": "z", "e": None}
    async with opened(tmp_path, bounds) as documents:
        await documents.insert("things", [{"id": id, "big": {"value": value}} for id, value in values.items()])
        for _ in range(2):
            assert await ids(documents, {}, [(VALUE, 1), ("id", 1)]) == ["d", "c", "a", "b", "e"]
    [(side, state)] = there(tmp_path)
    assert (side.kind, state) == ("sorted", "ready")
