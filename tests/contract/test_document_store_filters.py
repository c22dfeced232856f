"""What filters find in every document store."""

from __future__ import annotations

import pytest

from apiserver.stores.documents.base import DocumentStore, InvalidFilter
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
    Unequal,
    Update,
)
from tests.contract.document_stores import fill, ids, store

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


AT = FirstNumber(("last_metrics.a.b", "last_metrics.c.d", "last_metrics.e.f"))
FIRST: dict[str, Document] = {
    "first": {"a": {"b": 5}, "c": {"d": 0}},
    "second": {"c": {"d": 3.5}, "e": {"f": 9}},
    "third": {"a": {"b": None}, "c": {"d": "1"}, "e": {"f": 4}},
    "list": {"a": {"b": ["x", 8]}, "c": {"d": 1}},
    "text": {"a": {"b": "1"}},
    "none": {"a": 1},
}


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({AT: 5}, {"first"}),
        ({AT: 0}, set()),
        ({AT: "x"}, {"list"}),
        ({AT: "1"}, set()),
        ({AT: None}, {"text", "none"}),
        ({AT: Unequal(None)}, {"first", "second", "third", "list"}),
        ({AT: In([4, None])}, {"third", "text", "none"}),
        ({AT: Less(4)}, {"second"}),
        ({AT: Both(AtLeast(4), AtMost(5))}, {"first", "third"}),
        (NoneOf([{AT: Less(4)}, {AT: 8}]), {"first", "third", "text", "none"}),
        (AnyOf([{AT: Greater(4)}, {"last_metrics.c.d": "1"}]), {"first", "list", "third"}),
        (AllOf([{AT: Greater(3)}, {"last_metrics.c.d": 0}, {"name": None}]), {"first"}),
    ],
)
async def test_the_first_number_at_some_paths(store: DocumentStore, filter: Filter, expected: set[str]) -> None:
    documents = [{"id": name, "last_metrics": value} for name, value in FIRST.items()]
    await fill(store, *documents, collection="tasks")
    assert await ids(store, filter, collection="tasks") == sorted(expected)
    assert await store.count("tasks", filter) == len(expected)


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
        ({FirstNumber(("a.b", "b.a")): 1}, "field 'a.b or b.a'"),
        ({FirstNumber(("a.b", "a.b")): 1}, "field 'a.b or a.b'"),
        ({FirstNumber(("a.b",)): 1}, "field 'a.b'"),
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
