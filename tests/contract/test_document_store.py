"""What every document store does, by its protocol alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.answers import AnswerTooLarge
from apiserver.stores.documents.base import DocumentStore, DuplicateDocument, InvalidDocument, InvalidFilter
from apiserver.stores.documents.dialect.filters import meets, parse_filter
from apiserver.stores.documents.dialect.sorts import in_order, parse_sort
from apiserver.stores.documents.paging import pages_by_id
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
    Greater,
    HasAll,
    HasSize,
    In,
    Less,
    Matches,
    NoneOf,
    NotIn,
    Sort,
    Unequal,
    Update,
)
from apiserver.stores.documents.scoped import CompanyDocuments
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore
from tests.chance import examples
from tests.contract.document_stores import store

__all__ = ["store"]

pytestmark = pytest.mark.anyio

NESTED = {"k": [{"a": 1, "b": 2}, {"a": 3, "b": 4}]}
VALUES: dict[str, Document] = {
    "one": {"n": 1},
    "text": {"n": "1"},
    "null": {"n": None},
    "missing": {},
    "list": {"n": [1, "x", None]},
    "true": {"n": True},
    "nested": {"n": NESTED},
    "name": {"n": "Foo.bar"},
    "empty": {"n": []},
    "half": {"n": 2.5},
}


async def fill(store: DocumentStore, *documents: Document, collection: str = "things") -> None:
    await store.insert(collection, list(documents))


async def ids(store: DocumentStore, filter: Filter, *, sort: Sort = (), collection: str = "things") -> list[str]:
    found = [document["id"] for document in await store.find(collection, filter, projection=["id"], sort=sort)]
    return found if sort else sorted(found)


def but(*names: str) -> set[str]:
    return set(VALUES) - set(names)


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({}, but()),
        ({"n": 1}, {"one", "list"}),
        ({"n": 1.0}, {"one", "list"}),
        ({"n": Equal(2.5)}, {"half"}),
        ({"n": "1"}, {"text"}),
        ({"n": True}, {"true"}),
        ({"n": False}, set()),
        ({"n": None}, {"null", "missing", "list"}),
        ({"n": []}, {"empty"}),
        ({"n": [1, "x", None]}, {"list"}),
        ({"n": NESTED}, {"nested"}),
        ({"n": {"k": 1}}, set()),
        ({"n": Unequal(1)}, but("one", "list")),
        ({"n": Unequal(None)}, but("null", "missing", "list")),
        ({"n": In(["x", 2.5])}, {"list", "half"}),
        ({"n": In([None, True])}, {"null", "missing", "list", "true"}),
        ({"n": In([])}, set()),
        ({"n": NotIn([1])}, but("one", "list")),
        ({"n": NotIn([None])}, but("null", "missing", "list")),
        ({"n": NotIn([])}, but()),
        ({"n": Greater(0)}, {"one", "list", "half"}),
        ({"n": Greater(1)}, {"half"}),
        ({"n": AtLeast(1)}, {"one", "list", "half"}),
        ({"n": Less(2.5)}, {"one", "list"}),
        ({"n": Both(AtMost(2.5), Greater(1))}, {"half"}),
        ({"n": Greater("")}, {"text", "name", "list"}),
        ({"n": Less("2")}, {"text"}),
        ({"n": AtLeast(None)}, {"null", "missing", "list"}),
        ({"n": Greater(None)}, set()),
        ({"n": Greater(False)}, {"true"}),
        ({"n": AsNumber(Less(2))}, {"one", "text", "list"}),
        ({"n": AsNumber(Equal(1))}, {"one", "text", "list"}),
        ({"n": Both(AsNumber(AtLeast(1.5)), AsNumber(AtMost(2.5)))}, {"half"}),
        (NoneOf([{"n": AsNumber(Greater(0))}]), but("one", "text", "list", "half")),
        ({"n": Matches("o.b")}, {"name"}),
        ({"n": Matches("foo")}, set()),
        ({"n": Matches("^foo", any_case=True)}, {"name"}),
        ({"n": Matches("^(x|1)$")}, {"text", "list"}),
        (NoneOf([{"n": Greater(0)}]), but("one", "list", "half")),
        (NoneOf([{"n": Matches("1|x")}]), but("text", "list")),
        ({"n": HasAll([1, "x"])}, {"list"}),
        ({"n": HasAll([1])}, {"one", "list"}),
        ({"n": HasAll([])}, set()),
        ({"n": HasSize(0)}, {"empty"}),
        ({"n": HasSize(3)}, {"list"}),
        ({"n.k.a": 1, "n.k.b": 4}, {"nested"}),
        ({"n.k.a": 3}, {"nested"}),
        ({"n.k.0.a": 1}, {"nested"}),
        ({"n.k.1.a": 1}, set()),
        ({"n.k": HasSize(2)}, {"nested"}),
        (AllOf([{"n": 1}, {"id": "one"}]), {"one"}),
        (AnyOf([{"n": 1}, {"id": "name"}]), {"one", "list", "name"}),
        (NoneOf([{"n": 1}, {"n": None}]), but("one", "list", "null", "missing")),
        ({"id": In(["one", "two", "half"])}, {"one", "half"}),
        ({"id": "one", "n": 2}, set()),
    ],
)
async def test_filters(store: DocumentStore, filter: Filter, expected: set[str]) -> None:
    await fill(store, *({"id": name, **value} for name, value in VALUES.items()))
    assert await ids(store, filter) == sorted(expected)
    assert await store.count("things", filter) == len(expected)


INDEXED = {"text": "b", "number": 7, "half": 7.5, "true": True, "false": False, "null": None}


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"status": "b"}, {"text"}),
        ({"status": Unequal("b")}, {"number", "half", "true", "false", "null", "missing"}),
        ({"status": None}, {"null", "missing"}),
        ({"status": In(["b", None, True, 7.5])}, {"text", "null", "missing", "true", "half"}),
        ({"status": NotIn(["b", 7])}, {"half", "true", "false", "null", "missing"}),
        ({"status": Greater(7)}, {"half"}),
        ({"status": Both(AtLeast(7), AtMost(7.5))}, {"number", "half"}),
        ({"status": Less(100)}, {"number", "half"}),
        ({"status": Greater("a")}, {"text"}),
        ({"status": Less("c")}, {"text"}),
        ({"status": AtLeast(False)}, {"true", "false"}),
        ({"status": Less(True)}, {"false"}),
        (NoneOf([{"status": Greater(7)}]), {"text", "number", "true", "false", "null", "missing"}),
        ({"status": AsNumber(AtMost(7))}, {"number"}),
        ({"status": Matches(".")}, {"text"}),
        ({"status": HasSize(1)}, set()),
        ({"status": ["b"]}, set()),
        ({"status": 1}, set()),
    ],
)
async def test_filters_of_an_indexed_field(store: DocumentStore, filter: Filter, expected: set[str]) -> None:
    documents = [{"id": name, "status": value} for name, value in INDEXED.items()]
    await fill(store, *documents, {"id": "missing"}, collection="tasks")
    assert await ids(store, filter, collection="tasks") == sorted(expected)


@pytest.mark.parametrize("text", ["\\u0000", '{"a":"\\u0000"}', "a\0b", '"', "\\", "\\\\", "/", "é", " b", ""])
async def test_a_text_is_found_however_json_writes_it(store: DocumentStore, text: str) -> None:
    await fill(store, {"id": "one", "n": text, "k": [{"a": text}]}, {"id": "other", "n": "x", "k": [{"a": "x"}]})
    assert await ids(store, {"n": text}) == ["one"]
    assert await ids(store, {"k.a": text}) == ["one"]


@pytest.mark.parametrize(
    ("filter", "message"),
    [
        ({"$where": "1"}, "field '\\$where'"),
        ({"n": Matches("(")}, "field 'n'"),
        ({"n": Matches("x" * 5000)}, "field 'n'"),
        ({"n": Matches("(a{1000}){1000}")}, "field 'n'"),
        ({"a..b": 1}, "field 'a..b'"),
        ({"": 1}, "field ''"),
        ({"a.$b": 1}, "field 'a.\\$b'"),
    ],
)
async def test_a_malformed_filter_names_its_field(store: DocumentStore, filter: Filter, message: str) -> None:
    with pytest.raises(InvalidFilter, match=message):
        await store.find("things", filter)


async def test_an_object_is_only_ever_a_value(store: DocumentStore) -> None:
    await fill(store, {"id": "a", "n": {"b": 1}}, {"id": "b", "n": 1})
    assert await ids(store, {"n": {"b": 1}}) == ["a"]
    assert await ids(store, {"n": {"$gt": 0}}) == []
    assert await ids(store, {"n": In([{"b": 1}, {"$gt": 0}])}) == ["a"]


async def test_combinations_of_nothing(store: DocumentStore) -> None:
    await fill(store, {"id": "a"})
    assert await ids(store, AllOf([])) == await ids(store, NoneOf([])) == ["a"]
    assert await ids(store, AnyOf([])) == []


async def test_a_deep_filter_is_refused(store: DocumentStore) -> None:
    filter: Filter = {"n": 1}
    for _ in range(2000):
        filter = AllOf([filter])
    with pytest.raises(InvalidFilter, match="nested too deeply"):
        await store.find("things", filter)


async def test_long_filters(store: DocumentStore) -> None:
    await fill(store, {"id": "a", "n": 7}, {"id": "b", "n": [950]}, {"id": "c"})
    numbers = list(range(1000))
    assert await ids(store, AnyOf([{"n": number} for number in numbers])) == ["a", "b"]
    assert await ids(store, AllOf([{"n": Unequal(number)} for number in numbers])) == ["c"]
    assert await ids(store, {"n": In(list(range(100_000)))}) == ["a", "b"]
    assert await ids(store, {"id": In([str(number) for number in range(100_000)] + ["c"])}) == ["c"]


async def test_a_pattern_that_backtracks_ends(store: DocumentStore) -> None:
    await fill(store, {"id": "a", "n": "a" * 5000 + "b"})
    assert await ids(store, {"n": Matches("^(a+)+$")}) == []


async def test_a_pattern_is_looked_for_in_what_is_there_now(store: DocumentStore) -> None:
    paths = ("id", "name", "comment", "system_tags", "models.output.model")
    sought: Filter = AnyOf([{path: Matches("kiss", any_case=True)} for path in paths])
    await fill(
        store, {"id": "a", "name": "A \u212aiSs"}, {"id": "b", "comment": 'a "kiss"'}, {"id": "c"}, collection="tasks"
    )
    assert await ids(store, sought, collection="tasks") == ["a", "b"]
    await store.update("tasks", {"id": "c"}, Update(set={"models": {"output": [{"model": "x"}, {"model": "kiss"}]}}))
    await store.update("tasks", {"id": "a"}, Update(set={"name": "another", "status": "kiss"}))
    assert await ids(store, sought, collection="tasks") == ["b", "c"]
    await store.delete("tasks", {"id": "c"})
    await fill(store, {"id": "d", "system_tags": ["x", "a kiss"]}, {"id": "kiss"}, collection="tasks")
    assert await ids(store, sought, collection="tasks") == ["b", "d", "kiss"]
    await store.update("tasks", {"id": "e"}, Update(set={"name": "kiss"}), upsert={"id": "e"})
    changed = await store.find_and_update("tasks", {"id": "b"}, Update(set={"comment": "x"})) or {}
    assert (changed["id"], changed["comment"]) == ("b", "x")
    assert await ids(store, sought, collection="tasks") == ["d", "e", "kiss"]
    assert await store.count("tasks", sought) == 3


@pytest.mark.parametrize(
    "name", ["it's", 'quo"te', "back\\slash", "sp ace", "ünïcödé", "[0]", "tab\t", "n') OR 1=1 --", "*", "#"]
)
async def test_any_field_name_is_found(store: DocumentStore, name: str) -> None:
    await fill(store, {"id": "a", name: {name: "x"}}, {"id": "b", name: {name: "y"}}, {"id": "c"})
    assert await ids(store, {f"{name}.{name}": "x"}) == ["a"]
    assert await ids(store, {f"{name}.{name}": Unequal(None)}) == ["a", "b"]
    assert await ids(store, {}, sort=[(f"{name}.{name}", -1)]) == ["b", "a", "c"]
    assert await store.distinct("things", f"{name}.{name}", {}) == ["x", "y"]
    assert await store.count_by("things", {}, [f"{name}.{name}"]) == {("x",): 1, ("y",): 1, (None,): 1}
    assert await store.update("things", {"id": "c"}, Update(set={f"{name}.{name}": "z"})) == 1
    assert await store.find_one("things", {"id": "c"}) == {"id": "c", name: {name: "z"}}


async def test_sorts_by_class_then_value_what_has_none_last(store: DocumentStore) -> None:
    order: list[Any] = [-1, 0, 0.5, 2, "A", "a", "é", {"x": 1}, False, True, None, "", [], {}, [None]]
    await fill(store, *({"id": f"{place:02}", "n": value} for place, value in reversed(list(enumerate(order)))))
    await fill(store, {"id": "missing"})
    places = [f"{place:02}" for place in range(len(order))]
    assert await ids(store, {}, sort=[("n", 1)]) == [*places, "missing"]
    assert await ids(store, {}, sort=[("n", -1)]) == [*reversed(places[:10]), "missing", *reversed(places[10:])]


@pytest.mark.parametrize("path", ["hyperparams.General.lr.value", "last_metrics.m.v.value"])
async def test_texts_that_are_numbers_sort_as_numbers_where_they_may_be(store: DocumentStore, path: str) -> None:
    top, one, other, last = path.split(".")
    order = ["-3", "1e-3", "2", 7.5, "10", "11", "2 GB", "ten"]
    documents = [{"id": f"{number}", top: {one: {other: {last: value}}}} for number, value in enumerate(order)]
    await fill(
        store, *reversed(documents), {"id": "x"}, {"id": "y", top: {one: {other: {last: ""}}}}, collection="tasks"
    )
    numbers = [document["id"] for document in documents]
    assert await ids(store, {}, sort=[(path, 1)], collection="tasks") == [*numbers, "x", "y"]
    assert await ids(store, {}, sort=[(path, -1)], collection="tasks") == [*reversed(numbers), "y", "x"]
    page = await store.find("tasks", {}, sort=[(path, -1)], skip=6, limit=3, projection=[])
    assert [document["id"] for document in page] == ["1", "0", "y"]


async def test_a_list_sorts_by_its_least_or_greatest_item(store: DocumentStore) -> None:
    await fill(store, {"id": "a", "n": [1, 9]}, {"id": "b", "n": 5}, {"id": "c", "n": [None, 7]})
    assert await ids(store, {}, sort=[("n", 1)]) == ["a", "b", "c"]
    assert await ids(store, {}, sort=[("n", -1)]) == ["a", "b", "c"]
    await fill(store, {"id": "d", "o": [{"x": 2}, {"x": 8}]}, {"id": "e", "o": {"x": 4}}, collection="others")
    assert await ids(store, {}, sort=[("o.x", 1)], collection="others") == ["d", "e"]
    assert await ids(store, {}, sort=[("o.x", -1)], collection="others") == ["d", "e"]


@pytest.mark.parametrize("path", ["user", "rank"])
async def test_sorts_by_several_fields_ties_by_id(store: DocumentStore, path: str) -> None:
    documents = [{"id": f"{number:02}", path: number % 3, "more": number % 2} for number in range(12)]
    await fill(store, *reversed(documents), collection="tasks")
    expected = sorted(documents, key=lambda each: (-each[path], each["more"], each["id"]))  # type: ignore[operator]
    found = await ids(store, {}, sort=[(path, -1), ("more", 1)], collection="tasks")
    assert found == [document["id"] for document in expected]


@given(
    values=st.lists(
        st.fixed_dictionaries(
            {"status": st.sampled_from(["", "a", "b", None, 3])},
            optional={"n": st.sampled_from(["", "10", "9", 2, None, [], ["x", 4]]), "big": st.just({"n": 1})},
        ),
        max_size=20,
    ),
    sort=st.lists(st.tuples(st.sampled_from(["status", "n", "big.n", "id"]), st.sampled_from([1, -1])), min_size=1),
    filter=st.sampled_from([{}, {"status": Unequal("b")}, {"n": Greater(0)}]),
    size=st.integers(1, 7),
)
@examples(40)
async def test_pages_make_up_the_whole(
    store: DocumentStore, values: list[Document], sort: Sort, filter: Filter, size: int
) -> None:
    documents = [{"id": f"{number:02}", **value} for number, value in enumerate(values)]
    matching = [document for document in documents if meets(parse_filter(filter))(document)]
    await store.delete("tasks", {})
    await fill(store, *documents, collection="tasks")
    pages = [await store.find("tasks", filter, sort=sort, skip=skip, limit=size) for skip in range(0, 21, size)]
    assert [document for page in pages for document in page] == in_order(matching, parse_sort(sort))


@pytest.mark.parametrize("sort", [[("n", 2)], [("", 1)], [("$n", 1)]])
async def test_a_malformed_sort_is_refused(store: DocumentStore, sort: Sort) -> None:
    with pytest.raises(InvalidFilter, match="field"):
        await store.find("things", {}, sort=sort)


async def test_pages_hold_everything_once(store: DocumentStore) -> None:
    await fill(store, *({"id": f"{number:03}", "n": number % 2} for number in range(50)))
    pages = [await store.find("things", {}, sort=[("n", 1)], skip=skip, limit=7) for skip in range(0, 56, 7)]
    found = [document["id"] for page in pages for document in page]
    assert sorted(found) == [f"{number:03}" for number in range(50)]
    assert [len(page) for page in pages] == [7] * 7 + [1]
    assert await store.find("things", {}, sort=[("n", 1)], skip=60) == []
    assert await store.find("things", {}, limit=0) == []


async def test_projection(store: DocumentStore) -> None:
    task = {
        "id": "t",
        "name": "x",
        "execution": {"queue": "q", "more": {"deep": 1}},
        "last_metrics": {"m": {"v": {"value": 1}, "w": {"value": 2}}},
        "models": [{"name": "a", "uri": "b"}, {"name": "c"}, 5],
    }
    await fill(store, task, collection="tasks")

    async def projected(*paths: str) -> Document | None:
        return await store.find_one("tasks", {"id": "t"}, projection=paths)

    assert await projected() == {"id": "t"}
    assert await projected("name", "nowhere", "name.below") == {"id": "t", "name": "x"}
    assert await projected("execution.queue") == {"id": "t", "execution": {"queue": "q"}}
    assert await projected("execution.queue", "execution") == {"id": "t", "execution": task["execution"]}
    assert await projected("last_metrics.m.v") == {"id": "t", "last_metrics": {"m": {"v": {"value": 1}}}}
    assert await projected("models.name") == {"id": "t", "models": [{"name": "a"}, {"name": "c"}]}
    assert await store.find_one("tasks", {"id": "t"}) == task
    assert await store.find_one("tasks", {"id": "u"}) is None


@pytest.mark.parametrize(
    ("before", "update", "after"),
    [
        ({}, Update(set={"a": 1, "b.c": [2]}), {"a": 1, "b": {"c": [2]}}),
        ({"a": {"b": 1}}, Update(set={"a.c": 2}), {"a": {"b": 1, "c": 2}}),
        ({"a": [{"b": 1}]}, Update(set={"a.0.b": 2, "a.2": 3}), {"a": [{"b": 2}, None, 3]}),
        ({"a": 1}, Update(set={"a": None}), {"a": None}),
        ({"a": {"b": 1, "c": 2}}, Update(unset=["a.b", "x.y"]), {"a": {"c": 2}}),
        ({"a": [1, 2]}, Update(unset=["a.0"]), {"a": [None, 2]}),
        ({"a": 5, "b": 5}, Update(min={"a": 3, "b": 9, "c": 1}), {"a": 3, "b": 5, "c": 1}),
        ({"a": 5, "b": "x"}, Update(max={"a": 3, "b": 9, "c": 1}), {"a": 5, "b": "x", "c": 1}),
        ({"a": [1]}, Update(push={"a": [2], "b.c": [[3]]}), {"a": [1, 2], "b": {"c": [[3]]}}),
        ({"a": [1]}, Update(push={"a": [2, 3]}), {"a": [1, 2, 3]}),
        ({"a": [1, 2, 1, "1"]}, Update(pull={"a": 1, "b": 1}), {"a": [2, "1"]}),
        ({"a": [1, 2, 3]}, Update(pull={"a": AtLeast(2)}), {"a": [1]}),
        ({"a": [1, 2, 3]}, Update(pull={"a": In([1, 3])}), {"a": [2]}),
        ({"a": [{"k": 1, "v": 1}, {"k": 2}, 1]}, Update(pull={"a": {"k": 1}}), {"a": [{"k": 2}, 1]}),
        ({"a": [1]}, Update(add={"a": [1], "b": [1]}), {"a": [1], "b": [1]}),
        ({"a": [1]}, Update(add={"a": [2, 2, 1.0, True]}), {"a": [1, 2, True]}),
        ({"a": 1}, Update(set={"b": 1}, max={"a": 2}, push={"c": [1]}), {"a": 2, "b": 1, "c": [1]}),
        (
            {"last_metrics": {"m": {"v": 1}}},
            Update(set={"last_metrics.m.w": 2}),
            {"last_metrics": {"m": {"v": 1, "w": 2}}},
        ),
        ({"last_metrics": {"m": 1}, "a": 1}, Update(unset=["last_metrics"]), {"a": 1}),
    ],
)
async def test_updates(store: DocumentStore, before: Document, update: Update, after: Document) -> None:
    await fill(store, {"id": "x", **before}, {"id": "y", **before}, collection="tasks")
    assert await store.update("tasks", {"id": "x"}, update) == 1
    assert await store.find_one("tasks", {"id": "x"}) == {"id": "x", **after}
    assert await store.find_one("tasks", {"id": "y"}) == {"id": "y", **before}


@pytest.mark.parametrize(
    "update",
    [
        Update(set={"": 1}),
        Update(set={"a.$x": 1}),
        Update(set={"id": "other"}),
        Update(unset=["id"]),
        Update(set={"id.a": 1}),
        Update(set={"n.b": 1}),
        Update(set={"l.b": 1}),
        Update(set={"l.999999999": 1}),
        Update(set={"a": 1}, unset=["a"]),
        Update(set={"a": 1, "a.b": 1}),
        Update(push={"n": [1]}),
        Update(pull={"n": 1}),
        Update(pull={"l": {"$what": 1}}),
        Update(add={"n": [1]}),
    ],
)
async def test_an_update_that_does_not_fit_changes_nothing(store: DocumentStore, update: Update) -> None:
    document = {"id": "x", "n": 1, "l": [1]}
    await fill(store, document)
    with pytest.raises(InvalidFilter):
        await store.update("things", {"id": "x"}, update)
    assert await store.find("things", {}) == [document]


async def test_update_of_one_or_many(store: DocumentStore) -> None:
    await fill(store, *({"id": str(number), "n": number} for number in range(5)))
    assert await store.update("things", {"n": AtLeast(1)}, Update(set={"m": 1})) == 1
    assert await store.count("things", {"m": 1}) == 1
    assert await store.update("things", {"n": AtLeast(1)}, Update(set={"m": 2}), many=True) == 4
    assert await store.count("things", {"m": 2}) == 4
    assert await store.update("things", {"n": 9}, Update(set={"m": 3}), many=True) == 0


async def test_update_of_many_is_all_or_none(store: DocumentStore) -> None:
    await fill(store, {"id": "a", "n": [1]}, {"id": "b", "n": "text"}, {"id": "c", "n": [1]})
    with pytest.raises(InvalidFilter):
        await store.update("things", {}, Update(push={"n": [1]}), many=True)
    assert [document["n"] for document in await store.find("things", {}, sort=[("id", 1)])] == [[1], "text", [1]]


async def test_upsert(store: DocumentStore) -> None:
    fresh = {"id": "a", "n": [1]}
    assert await store.update("things", {"id": "a"}, Update(push={"n": [2]}), upsert=fresh) == 0
    assert await store.update("things", {"id": "a"}, Update(push={"n": [3]}), upsert=fresh) == 1
    assert await store.find("things", {}) == [{"id": "a", "n": [1, 2, 3]}]
    assert fresh == {"id": "a", "n": [1]}
    with pytest.raises(DuplicateDocument):
        await store.update("things", {"n": 77}, Update(set={"n": 1}), upsert=fresh)


async def test_find_and_update(store: DocumentStore) -> None:
    await fill(store, {"id": "a", "n": [1]}, {"id": "b", "n": [2]})
    before = await store.find_and_update("things", {"n": 2}, Update(push={"n": [3]}), return_new=False)
    after = await store.find_and_update("things", {"id": "b"}, Update(push={"n": [4]}))
    assert (before, after) == ({"id": "b", "n": [2]}, {"id": "b", "n": [2, 3, 4]})
    assert await store.find_and_update("things", {"id": "c"}, Update(push={"n": [4]})) is None


async def test_delete(store: DocumentStore) -> None:
    await fill(store, *({"id": str(number), "n": [number]} for number in range(5)))
    assert await store.delete("things", {"n": Greater(2)}) == 2
    assert await store.delete("things", {"n": Greater(2)}) == 0
    assert await ids(store, {}) == ["0", "1", "2"]


async def test_collections_are_apart(store: DocumentStore) -> None:
    await fill(store, {"id": "a"}, collection="things")
    await fill(store, {"id": "a", "n": 1}, collection="others")
    assert await store.find("things", {}) == [{"id": "a"}]
    assert await store.count("nothing", {}) == 0


async def test_what_is_there_is_not_inserted_again(store: DocumentStore) -> None:
    await fill(store, {"id": "a", "n": 1})
    with pytest.raises(DuplicateDocument):
        await fill(store, {"id": "b"}, {"id": "a", "n": 2})
    assert await store.find("things", {}) == [{"id": "a", "n": 1}]


async def test_unique_fields(store: DocumentStore) -> None:
    first, second = {"id": "a", "company": "c", "name": "n"}, {"id": "b", "company": "c", "name": "m"}
    await fill(store, first, second, {"id": "d", "company": "d", "name": "n"}, collection="queues")
    with pytest.raises(DuplicateDocument, match="company, name"):
        await fill(store, {**first, "id": "e"}, collection="queues")
    with pytest.raises(DuplicateDocument):
        await store.update("queues", {"id": "b"}, Update(set={"name": "n"}))
    with pytest.raises(DuplicateDocument):
        await store.find_and_update("queues", {"id": "b"}, Update(set={"name": "n"}))
    assert await store.find_one("queues", {"id": "b"}) == second


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"id": ""},
        {"id": 1},
        {"id": "a", "n": 2**70},
        {"id": "a", "n": object()},
        {"id": "a", "n": "\ud800"},
        {"id": "a", "project": ["p"]},
        {"id": "a", "project": {"p": 1}},
        {"id": "a", "status": 2**64},
    ],
)
async def test_what_cannot_be_kept_is_refused(store: DocumentStore, document: Document) -> None:
    with pytest.raises(InvalidDocument):
        await fill(store, {"id": "fine"}, document, collection="tasks")
    assert await store.count("tasks", {}) == 0


async def test_a_document_nested_too_deeply_is_refused(store: DocumentStore) -> None:
    value: Any = 1
    for _ in range(3000):
        value = [value]
    with pytest.raises(InvalidDocument):
        await fill(store, {"id": "a", "n": value})


async def test_nan_and_infinities_become_null(store: DocumentStore) -> None:
    await fill(store, {"id": "a", "n": float("nan"), "status": float("inf")}, collection="tasks")
    assert await store.find("tasks", {}) == [{"id": "a", "n": None, "status": None}]
    assert await ids(store, {"n": None, "status": None}, collection="tasks") == ["a"]


async def test_count_by(store: DocumentStore) -> None:
    rows = [("c", "p", "x"), ("c", "p", "x"), ("c", "q", None), ("d", "p", "x")]
    documents = [{"id": str(place), "company": c, "project": p, "kind": k} for place, (c, p, k) in enumerate(rows)]
    await fill(store, *documents, {"id": "9", "company": "c", "kind": [1]}, collection="tasks")
    counts = await store.count_by("tasks", {"company": "c"}, ["project", "kind"])
    assert counts == {("p", "x"): 2, ("q", None): 1, (None, "[1]"): 1}
    assert await store.count_by("tasks", {"company": "x"}, ["project"]) == {}
    assert await store.count_by("tasks", {}, ["company"]) == {("c",): 4, ("d",): 1}


async def test_count_items(store: DocumentStore) -> None:
    tags: list[Any] = [["a", "b"], ["a"], [], "a", None, ["c", {"x": 1}]]
    documents = [{"id": str(place), "tags": value, "o": {"k": value}} for place, value in enumerate(tags)]
    await fill(store, *documents, {"id": "9"}, {"id": "8", "company": "d", "tags": ["a"]}, collection="tasks")
    for field in ("tags", "o.k"):
        counts = await store.count_items("tasks", {"company": None}, field)
        assert counts == {"a": 3, "b": 1, "c": 1, '{"x":1}': 1, None: 3}


@pytest.mark.parametrize(("field", "size", "number"), [("o.k", 20_000, 5), ("tags", 20_000, 5), ("o.k", 100, 1500)])
async def test_groups_count_while_they_are_read(store: DocumentStore, field: str, size: int, number: int) -> None:
    texts = [f"{place}{'x' * size}" for place in range(number)]
    await fill(store, *({"id": f"t{i}", "tags": [text], "o": {"k": text}} for i, text in enumerate(texts)))
    cut = await store.count_items("things", {}, field, longest=200)
    assert {key[:150] for key in cut} == {text[:150] for text in texts}
    assert all(len(key) > min(size, 200) for key in cut)
    if isinstance(store, SqliteDocumentStore) and field == "o.k":  # it would sort all of the texts in memory
        assert max(map(len, cut)) <= 201
    sizes: list[int] = []
    assert len(await store.count_items("things", {}, field, counted=sizes.append)) == number
    assert sum(sizes) > size * number / 2

    def refuse(_: int) -> None:
        raise AnswerTooLarge

    with pytest.raises(AnswerTooLarge):
        await store.count_items("things", {}, field, counted=refuse)


async def test_distinct(store: DocumentStore) -> None:
    await fill(store, {"id": "1", "tags": ["b", "a"], "user": "u", "o": [{"x": 1}, {"x": [2, 3]}]}, collection="tasks")
    await fill(store, {"id": "2", "tags": ["b", None], "user": None, "o": {"x": 2.0}}, collection="tasks")
    await fill(store, {"id": "3", "tags": "c", "n": True}, {"id": "4", "n": 1, "user": "t"}, collection="tasks")
    assert await store.distinct("tasks", "tags", {}) == ["a", "b", "c"]
    assert await store.distinct("tasks", "tags", {"id": "3"}) == ["c"]
    await fill(store, {"id": "5", "tags": ["p", "q"]}, {"id": "6", "tags": ["p", "r"]}, collection="models")
    assert await store.distinct("models", "tags", {}) == ["p", "q", "r"]
    assert await store.distinct("tasks", "user", {}) == ["t", "u"]
    assert await store.distinct("tasks", "o.x", {}) == [1, 2, 3]
    assert await store.distinct("tasks", "n", {}) == [1, True]


async def test_each_item_of_a_queue_is_popped_once(store: DocumentStore) -> None:
    total = 120
    await fill(store, {"id": "q", "entries": [{"task": str(number)} for number in range(total)]}, collection="queues")
    popped: list[str] = []

    async def worker() -> None:
        while True:
            queue = await store.find_one("queues", {"id": "q"})
            assert queue is not None
            if not queue["entries"]:
                return
            task = queue["entries"][0]["task"]
            taken = await store.find_and_update(
                "queues",
                {"id": "q", "entries.task": task},
                Update(pull={"entries": {"task": task}}),
                return_new=False,
            )
            if taken is not None:
                popped.append(task)
            await asyncio.sleep(0)

    await asyncio.gather(*(worker() for _ in range(8)))
    assert sorted(popped, key=int) == [str(number) for number in range(total)]


async def test_no_update_is_lost(store: DocumentStore) -> None:
    await fill(store, {"id": "a", "n": [], "last_metrics": {"m": [0]}}, collection="tasks")
    by_id, by_name = {"id": "a"}, {"last_metrics.m": AtLeast(0)}
    await asyncio.gather(
        *(store.update("tasks", by_id, Update(push={"n": [1]})) for _ in range(40)),
        *(store.update("tasks", by_name, Update(push={"n": [1], "last_metrics.m": [1]}), many=True) for _ in range(40)),
        *(store.find_and_update("tasks", by_id, Update(push={"n": [1]})) for _ in range(40)),
    )
    assert await store.find("tasks", {}) == [{"id": "a", "n": [1] * 120, "last_metrics": {"m": [0] + [1] * 40}}]


async def test_thousands_of_documents(store: DocumentStore) -> None:
    documents = [
        {"id": f"{number:05}", "company": f"c{number % 2}", "project": f"p{number % 10}", "tags": [f"t{number % 7}"]}
        for number in range(4000)
    ]
    await fill(store, *documents, collection="tasks")
    assert await store.count("tasks", {"company": "c0", "project": In(["p2", "p3"])}) == 400
    assert await store.count("tasks", AnyOf([{"tags": "t1"}, {"tags": HasSize(2)}])) == 572
    assert await store.count("tasks", {"project": Matches("p[2-9]")}) == 3200
    [last] = await store.find("tasks", {"project": Matches("[2-9]")}, sort=[("id", 1)], skip=3199, projection=[])
    assert last == {"id": "03999"}
    page = await store.find("tasks", {"company": "c1"}, sort=[("project", -1)], skip=399, limit=2, projection=[])
    assert page == [{"id": "00009"}, {"id": "03997"}]
    assert await store.update("tasks", {"project": "p4"}, Update(set={"status": "s"}), many=True) == 400
    assert await store.count_by("tasks", {}, ["status"]) == {("s",): 400, (None,): 3600}
    assert await store.delete("tasks", {"id": In([document["id"] for document in documents[:3000]])}) == 3000
    assert await store.count("tasks", {}) == 1000


async def test_varieties_have_all_names_there_are(store: DocumentStore) -> None:
    shapes: list[Any] = [{"a": {"x": 1}}, {"a": {"y": 1}, "b": {}}, {"a": {"x": {}}}, {}, None, 5, {"c": 1}]
    documents = [{"id": f"{number}", "hyperparams": shape, "n": 1} for number, shape in enumerate(shapes)]
    await fill(store, *documents, {"id": "x"}, {"id": "y", "hyperparams": {"d": {"e": 1}}}, collection="tasks")
    found = {document["id"]: document for document in await store.varieties("tasks", "hyperparams", {"n": 1})}
    assert {"1", "6"} <= set(found)
    assert len({"0", "2"} & set(found)) == 1
    assert found["1"] == {"id": "1", "hyperparams": shapes[1]}
    assert await store.varieties("tasks", "hyperparams", {"n": 2}) == []
    await store.update("tasks", {"id": "2"}, Update(set={"hyperparams.a.z": 1}))
    later = await store.varieties("tasks", "hyperparams", {"n": 1})
    assert {"id": "2", "hyperparams": {"a": {"x": {}, "z": 1}}} in later


async def test_a_sort_sees_what_has_changed(store: DocumentStore) -> None:
    path, by_metric = "last_metrics.m.v.value", [("last_metrics.m.v.value", -1)]
    for number in range(4):
        await fill(store, {"id": f"{number}", "last_metrics": {"m": {"v": {"value": number}}}}, collection="tasks")
    assert await ids(store, {}, sort=by_metric, collection="tasks") == ["3", "2", "1", "0"]
    await store.update("tasks", {"id": "0"}, Update(set={path: 9}))
    await store.find_and_update("tasks", {"id": "2"}, Update(unset=[path]))
    assert await ids(store, {}, sort=by_metric, collection="tasks") == ["0", "3", "1", "2"]
    await store.delete("tasks", {"id": "3"})
    await fill(store, {"id": "4", "last_metrics": {"m": {"v": {"value": 2}}}}, collection="tasks")
    assert await ids(store, {}, sort=by_metric, collection="tasks") == ["0", "4", "1", "2"]
    with pytest.raises(DuplicateDocument):
        await fill(store, {"id": "5", "last_metrics": {"m": {"v": {"value": 20}}}}, {"id": "0"}, collection="tasks")
    await fill(store, {"id": "6", "last_metrics": {}}, collection="tasks")
    assert await ids(store, {}, sort=by_metric, collection="tasks") == ["0", "4", "1", "6", "2"]


async def test_counts_and_values_see_what_has_changed(store: DocumentStore) -> None:
    async def seen() -> tuple[int, list[Any], dict[tuple[Any, ...], int]]:
        live: Filter = {"system_tags": Unequal("archived")}
        counted = await store.count_by("tasks", live, ["type"])
        return await store.count("tasks", live), await store.distinct("tasks", "tags", live), counted

    await fill(store, {"id": "a", "type": "t", "tags": ["x"], "system_tags": []}, collection="tasks")
    assert await seen() == await seen() == (1, ["x"], {("t",): 1})
    await store.update("tasks", {"id": "b"}, Update(set={"type": "u"}), upsert={"id": "b", "tags": ["y"]})
    assert await seen() == (2, ["x", "y"], {("t",): 1, ("u",): 1})
    await store.update("tasks", {}, Update(push={"tags": ["z"]}), many=True)
    await store.find_and_update("tasks", {"id": "a"}, Update(set={"type": "u"}))
    assert await seen() == (2, ["x", "y", "z"], {("u",): 2})
    await store.update("tasks", {"id": "a"}, Update(set={"system_tags": ["archived"]}))
    assert await seen() == (1, ["y", "z"], {("u",): 1})
    await store.delete("tasks", {"id": "b"})
    assert await seen() == (0, [], {})


async def test_collections_that_hold_something_are_named(store: DocumentStore) -> None:
    assert await store.collections() == []
    await fill(store, {"id": "a"}, collection="tasks")
    await fill(store, {"id": "a"}, collection="things")
    await fill(store, {"id": "a"}, collection="projects")
    await store.delete("projects", {})
    assert await store.find("models", {}) == []
    assert await store.collections() == ["tasks", "things"]


async def test_each_filter_has_its_update(store: DocumentStore) -> None:
    await fill(store, *({"id": id, "n": n} for n, id in enumerate("abc")))
    updates: list[tuple[Filter, Update]] = [
        ({"id": "b"}, Update(set={"n": 7})),
        ({"id": "a", "n": 5}, SET),
        ({"id": "c"}, Update(max={"n": 9})),
    ]
    assert await store.update_each("things", updates) == [1, 0, 1]
    assert await store.update_each("things", []) == []
    found = await store.find("things", {}, sort=[("id", 1)])
    assert [document["n"] for document in found] == [0, 7, 9]


SET: Update = Update(set={"n": 2})
#: Every method that changes documents, in each of its ways.
CHANGES: dict[str, Callable[[DocumentStore], Awaitable[Any]]] = {
    "insert": lambda store: store.insert("things", [{"id": "c"}]),
    "update": lambda store: store.update("things", {"id": "a"}, SET),
    "update of what another field names": lambda store: store.update("things", {"n": 1}, SET),
    "update of many": lambda store: store.update("things", {}, SET, many=True),
    "update of many by a pattern": lambda store: store.update("things", {"id": Matches("a|b")}, SET, many=True),
    "update of none, with one to insert": lambda store: store.update("things", {"id": "c"}, SET, upsert={"id": "c"}),
    "update_each": lambda store: store.update_each("things", [({"id": "a"}, SET)]),
    "find_and_update": lambda store: store.find_and_update("things", {"id": "a"}, SET),
    "find_and_update of any": lambda store: store.find_and_update("things", {}, SET),
    "delete": lambda store: store.delete("things", {"id": "a"}),
    "delete by a pattern": lambda store: store.delete("things", {"id": Matches("a")}),
}
READS: dict[str, Callable[[DocumentStore], Awaitable[Any]]] = {
    "find": lambda store: store.find("things", {}),
    "find_one": lambda store: store.find_one("things", {"id": "a"}),
    "count": lambda store: store.count("things", {}),
    "count_by": lambda store: store.count_by("things", {}, ["n"]),
    "count_items": lambda store: store.count_items("things", {}, "n"),
    "distinct": lambda store: store.distinct("things", "n", {}),
    "varieties": lambda store: store.varieties("things", "n", {}),
    "collections": lambda store: store.collections(),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_each_change_is_counted(store: DocumentStore, change: str) -> None:
    await fill(store, {"id": "a", "n": 1}, {"id": "b", "n": 3})
    before = store.changes("things", ["id", "n"]), await store.find("things", {}, sort=[("id", 1)])
    await CHANGES[change](store)
    after = store.changes("things", ["id", "n"]), await store.find("things", {}, sort=[("id", 1)])
    assert before[0] != after[0]
    assert before[1] != after[1]


async def test_no_read_counts_as_a_change(store: DocumentStore) -> None:
    await fill(store, {"id": "a", "n": 1})
    before = store.changes("things", ["id", "n"])
    for read in READS.values():
        await read(store)
    assert store.changes("things", ["id", "n"]) == before


def test_every_method_is_known_to_change_documents_or_not() -> None:
    public = {name for name, method in vars(DocumentStore).items() if callable(method) and not name.startswith("_")}
    changing = {change.partition(" ")[0] for change in CHANGES}
    assert public == changing | set(READS) | {"open", "close", "changes"}


async def test_a_closed_store_closes_again(store: DocumentStore) -> None:
    await store.close()
    await store.close()


@pytest.mark.parametrize(
    ("filter", "sort"),
    [
        ({}, [("created", 1)]),
        ({}, [("comment", 1), ("created", 1)]),
        ({"comment": Matches("^x")}, [("hyperparams.a.b.value", -1), ("id", 1)]),
        ({"id": In([f"{n:02}" for n in range(40)])}, [("id", 1)]),
    ],
)
async def test_what_is_read_is_counted(store: DocumentStore, filter: Filter, sort: Sort) -> None:
    texts = ["x" * length for length in [10] * 20 + [300_000] * 10 + [3_000_000] + [5] * 9]
    documents = [{"id": f"{n:02}", "created": f"{n:02}", "comment": text} for n, text in enumerate(texts)]
    await fill(store, *documents, collection="tasks")
    told: list[int] = []
    found = await store.find("tasks", filter, sort=sort, counted=told.append)
    assert sorted(document["id"] for document in found) == [document["id"] for document in documents]
    assert found == await store.find("tasks", filter, sort=sort)
    assert sum(map(len, texts)) < sum(told) < 2 * sum(map(len, texts))
    assert len(told) > 1

    told.clear()
    few = await store.find("tasks", filter, sort=sort, skip=2, limit=3, projection=["created"], counted=told.append)
    assert [document["id"] for document in few] == [document["id"] for document in found[2:5]]
    assert 0 < sum(told) < 30_000_000

    def refuse(size: int) -> None:
        told.append(size)
        if sum(told) > 1_000_000:
            raise BufferError("no room")

    told.clear()
    with pytest.raises(BufferError, match="no room"):
        await store.find("tasks", filter, sort=sort, counted=refuse)
    assert sum(told[:-1]) <= 1_000_000  # what refuses is not asked again
    assert await store.count("tasks", filter) == len(texts)
    assert await store.find("tasks", filter, sort=sort, counted=lambda size: None) == found


@pytest.mark.parametrize("count", [0, 1, 3, 4, 10])
async def test_the_documents_of_a_company_come_in_pages_by_id_however_many_it_has(
    store: DocumentStore, count: int
) -> None:
    texts = [f"{n:02}" for n in range(20)]
    await fill(store, *({"id": f"o{text}", "company": "other", "name": text} for text in texts), collection="tasks")
    own: list[Document] = [
        {"id": f"c{text}", "company": "c", "created": text[::-1], "name": text} for text in texts[:count]
    ]
    own[2:3] = [{"id": "c02", "company": "c", "created": None, "name": "02"}] if count > 2 else []
    await fill(store, *own[::-1], collection="tasks")
    public = {"id": "c999", "company": "c", "public": True, "name": "99"}
    await fill(store, public, collection="tasks")

    def pages(of: DocumentStore | CompanyDocuments, **options: Any) -> AsyncIterator[list[Document]]:
        return pages_by_id(of, "tasks", projection=["name"], limit=3, **options)

    private = [page async for page in pages(CompanyDocuments(store, "c"))]
    assert [one["name"] for page in private for one in page] == texts[:count]
    assert all(1 <= len(page) <= 3 for page in private)
    wanted = [one async for page in pages(store, wanted={"company": "c"}) for one in page]
    assert [one["name"] for one in wanted] == [*texts[:count], "99"]
    every = [one["id"] async for page in pages(store) for one in page]
    assert every == sorted([*(one["id"] for one in own), "c999", *(f"o{text}" for text in texts)])
