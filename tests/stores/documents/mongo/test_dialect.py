"""MongoDB finds, sorts, counts and changes documents just as the dialect says, for any documents."""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apiserver.stores.documents.base import Index, InvalidDocument, InvalidFilter
from apiserver.stores.documents.dialect import paths
from apiserver.stores.documents.dialect.filters import meets, parse_filter
from apiserver.stores.documents.dialect.paths import parse
from apiserver.stores.documents.dialect.sorts import in_order, parse_sort
from apiserver.stores.documents.dialect.updates import ParsedUpdate
from apiserver.stores.documents.mongo.store import MongoDocumentStore
from apiserver.stores.documents.query import Document, Filter, HasSize, In, Matches, NoneOf, Sort, Update
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore
from tests.engines.fixtures import own_name
from tests.engines.mongodb import drop
from tests.stores.documents import strategies
from tests.stores.documents.changing import changed

INDEXES = [Index("things", ("key",)), Index("things", ("deep.key",))]
LARGE = {"things": ["big"]}
NUMERIC = {"things": ["b"]}

#: The same examples each time, as a small server for tests has faults of its own: that it found one would be no news.
SAME = settings(derandomize=True)


class Things:
    """A store whose collection `things` is filled anew for each example."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.loop = asyncio.new_event_loop()
        self.store = MongoDocumentStore(url, migrate=True, indexes=INDEXES, large=LARGE, numeric=NUMERIC)
        self.loop.run_until_complete(self.store.open())

    def run(self, documents: list[Document], work: Callable[[MongoDocumentStore], Awaitable[None]]) -> None:
        """Do the work on a collection of these documents."""

        async def run() -> None:
            await self.store.delete("things", {})
            await self.store.insert("things", documents)
            await work(self.store)

        self.loop.run_until_complete(run())

    def close(self) -> None:
        self.loop.run_until_complete(self.store.close())
        self.loop.close()


@pytest.fixture(scope="module")
def things(mongodb_url: str) -> Iterator[Things]:
    name = own_name()
    opened = Things(f"{mongodb_url}/{name}")
    yield opened
    opened.close()
    drop(mongodb_url, name)


@given(strategies.collections, strategies.filters)
@settings(SAME, max_examples=80)
def test_a_filter_finds_what_it_matches(things: Things, documents: list[Document], filter: Filter) -> None:
    condition = parse_filter(filter)
    expected = [document for document in documents if meets(condition)(document)]

    async def work(store: MongoDocumentStore) -> None:
        found = await store.find("things", filter)
        assert sorted(found, key=lambda document: str(document["id"])) == expected
        assert await store.count("things", filter) == len(expected)
        assert await store.delete("things", filter) == len(expected)
        assert await store.count("things", {}) == len(documents) - len(expected)

    things.run(documents, work)


changes = st.lists(st.tuples(strategies.filters, strategies.updates), min_size=1, max_size=3)


@given(strategies.collections, changes)
@settings(SAME, max_examples=50)
def test_updates_do_what_the_dialect_says(
    things: Things, documents: list[Document], changes: list[tuple[Filter, Update]]
) -> None:
    async def work(store: MongoDocumentStore) -> None:
        model = documents
        for filter, update in changes:
            model = await changed(store, model, filter, update)
            assert await store.find("things", {}, sort=[("id", 1)]) == model

    things.run(documents, work)


NESTED: list[Any] = [[], {}, [1], ["a", None], {"a": 1}, [{"a": 1}, {"b": 1}], {"a": [True]}]


@pytest.mark.parametrize("path", ["id", "key", "deep.key", "a", "a.b", "big.a.b", 'q".a'])
def test_every_comparison_with_every_value(things: Things, path: str) -> None:
    held = [value for value in strategies.SINGLES if isinstance(value, str) and value]
    if path != "id":
        held = [*strategies.SINGLES, *([] if path.endswith("key") else NESTED)]
    documents = [strategies.nested(path, {"id": f"{place:03}"}, value) for place, value in enumerate(held)]
    documents += [] if path == "id" else [{"id": "missing"}]
    operands = [*strategies.SINGLES, *NESTED, 2**64, float("inf"), float("nan")]
    tests: list[Any] = [test(operand) for operand in operands for test in strategies.COMPARISONS]
    tests += [In([one, other]) for one, other in itertools.pairwise(operands)]
    tests += [HasSize(1), HasSize(2**64)]
    tests += [Matches(pattern, any_case=True) for pattern in ("a", "^A.$", "é", "^$", "a+.*\n", "[a-z]", r"\d|^.*$")]

    async def work(store: MongoDocumentStore) -> None:
        for test in tests:
            for filter in ({path: test}, NoneOf([{path: test}])):
                condition = parse_filter(filter)
                expected = sorted(document["id"] for document in documents if meets(condition)(document))
                found = await store.find("things", filter, projection=[])
                assert sorted(document["id"] for document in found) == expected, filter

    things.run(documents, work)


sortable = st.sampled_from(
    [
        None,
        True,
        False,
        -1,
        0.5,
        1,
        1.0,
        2**62,
        "",
        "a",
        "B",
        "é",
        "10",
        "9.5",
        ["a", 2],
        [3, None],
        {"a": "x"},
        [{"a": 5}, {"a": 0}],
    ]
)
sorts = st.lists(
    st.tuples(st.sampled_from(["a", "b", "a.a", "id"]), st.sampled_from([1, -1])),
    min_size=1,
    max_size=2,
    unique_by=lambda term: term[0],
)


@given(st.lists(st.fixed_dictionaries({}, optional={"a": sortable, "b": sortable}), max_size=8), sorts)
@settings(SAME, max_examples=50)
def test_a_sort_orders_by_value(things: Things, given: list[Document], sort: Sort) -> None:
    documents = [{"id": str(number), **document} for number, document in enumerate(given)]
    expected = in_order(documents, parse_sort(sort, NUMERIC["things"]))

    async def work(store: MongoDocumentStore) -> None:
        found = await store.find("things", {}, sort=sort, projection=[])
        assert [document["id"] for document in found] == [document["id"] for document in expected]

    things.run(documents, work)


held = st.sampled_from(
    [None, True, 1, 1.0, 2, "a", "b", [], ["a", None], [1, "a"], {"a": 1}, {"a": {"b": 1}}, [{"a": 1}, {"a": [2]}, 3]]
)
fields = st.sampled_from(["a", "b", "a.a", "b.a", "a.a.b", "big.a", "id", "a.0", 'q".a'])


@given(
    st.lists(
        st.fixed_dictionaries({}, optional={"a": held, "b": held, "big": held, 'q"': held}), min_size=6, max_size=6
    ),
    st.lists(fields, min_size=1, max_size=3),
)
@settings(SAME, max_examples=40)
def test_projections_counts_and_values_are_those_of_sqlite(
    things: Things, given: list[Document], fields: list[str]
) -> None:
    documents = [{"id": str(number), **document} for number, document in enumerate(given)]

    async def work(store: MongoDocumentStore) -> None:
        wanted = [parse(field) for field in fields]
        found = await store.find("things", {}, projection=fields, sort=[("id", 1)])
        assert found == [paths.project(document, wanted) for document in documents]
        with TemporaryDirectory() as folder:
            other = SqliteDocumentStore(Path(folder) / "documents.db", indexes=INDEXES, apart=LARGE)
            await other.open()
            await other.insert("things", documents)
            assert await store.count_by("things", {}, fields) == await other.count_by("things", {}, fields)
            for field in fields:
                assert await store.distinct("things", field, {}) == await other.distinct("things", field, {})
            await other.close()

    things.run(documents, work)


def names_of(value: Any) -> Any:
    """The names in an object, and in the objects in it."""
    return [(name, list(inner) if isinstance(inner, dict) else None) for name, inner in value.items()]


@given(strategies.collections, st.sampled_from(["a", "big", 'q"']), st.sampled_from([{}, {"a": Matches("a|b")}]))
@settings(SAME, max_examples=40)
def test_varieties_have_all_names_there_are(
    things: Things, documents: list[Document], field: str, filter: Filter
) -> None:
    condition = parse_filter(filter)
    expected = [paths.project(document, [(field,)]) for document in documents if meets(condition)(document)]
    objects = [document[field] for document in expected if isinstance(document.get(field), dict)]

    async def work(store: MongoDocumentStore) -> None:
        found = await store.varieties("things", field, filter)
        assert all(document in expected for document in found)
        names = [names_of(document[field]) for document in found if isinstance(document.get(field), dict)]
        assert all(names.count(names_of(value)) == 1 for value in objects if value)

    things.run(documents, work)


@given(strategies.collections, strategies.filters, strategies.updates)
@settings(SAME, max_examples=50)
def test_one_document_is_found_and_updated(
    things: Things, documents: list[Document], filter: Filter, update: Update
) -> None:
    condition = parse_filter(filter)

    async def work(store: MongoDocumentStore) -> None:
        try:
            before = await store.find_and_update("things", filter, update, return_new=False)
        except (InvalidFilter, InvalidDocument):
            assert await store.find("things", {}, sort=[("id", 1)]) == documents
            return
        expected = copy.deepcopy(documents)
        if before is not None:
            assert meets(condition)(before)
            ParsedUpdate(update).apply(next(document for document in expected if document["id"] == before["id"]))
        else:
            assert not any(map(meets(condition), documents))
        assert await store.find("things", {}, sort=[("id", 1)]) == expected
        one = {"id": "3"}
        try:
            ParsedUpdate(update).apply(expected[3])
            assert await store.update("things", one, update) == 1
        except InvalidFilter:
            with pytest.raises(InvalidFilter):
                await store.update("things", one, update)
        except InvalidDocument:
            assert isinstance(expected[3].get("key"), dict | list)
        else:
            assert await store.find_one("things", one) == expected[3]

    things.run(documents, work)
