"""What every document store makes of updates, and what it refuses to keep."""

from __future__ import annotations

import pytest

from apiserver.stores.documents.base import DocumentStore, DuplicateDocument, InvalidDocument, InvalidFilter
from apiserver.stores.documents.query import AtLeast, Document, Greater, In, Update
from tests.contract.document_stores import fill, ids, store

__all__ = ["store"]

pytestmark = pytest.mark.anyio


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
