"""In which order every document store answers, and in which pages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apiserver.stores.documents.base import DocumentStore, InvalidFilter
from apiserver.stores.documents.dialect.filters import meets, parse_filter
from apiserver.stores.documents.dialect.sorts import in_order, parse_sort
from apiserver.stores.documents.query import AtLeast, Document, Filter, FirstNumber, Greater, Sort, Unequal
from tests.chance import examples
from tests.contract.document_stores import fill, ids, store

__all__ = ["store"]

pytestmark = pytest.mark.anyio


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


async def test_sorts_by_the_first_number_at_some_paths(store: DocumentStore) -> None:
    place = FirstNumber(("last_metrics.a.b.value", "last_metrics.c.d.value", "last_metrics.e.f.value"))
    values: dict[str, dict[str, Document]] = {
        "one": {"a": {"b": {"value": 5}}, "c": {"d": {"value": 0}}},
        "other": {"c": {"d": {"value": 3.5}}},
        "null": {"a": {"b": {"value": None}}, "e": {"f": {"value": 4}}},
        "text": {"a": {"b": {"value": "1"}}},
        "none": {},
    }
    await fill(store, *({"id": id, "last_metrics": value} for id, value in values.items()), collection="tasks")
    assert await ids(store, {}, sort=[(place, 1)], collection="tasks") == ["other", "null", "one", "none", "text"]
    assert await ids(store, {}, sort=[(place, -1)], collection="tasks") == ["one", "null", "other", "text", "none"]
    page = await store.find("tasks", {place: AtLeast(4)}, sort=[(place, -1), ("name", 1)], skip=1, limit=1)
    assert [task["id"] for task in page] == ["null"]


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


@pytest.mark.parametrize("sort", [[("n", 2)], [("", 1)], [("$n", 1)], [(FirstNumber(("a.b", "b.a")), 1)]])
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
