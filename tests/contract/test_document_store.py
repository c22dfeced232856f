"""What every document store does, by its protocol alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from apiserver.common.answers import AnswerTooLarge
from apiserver.stores.documents.base import DocumentReads, DocumentStore, DuplicateDocument, InvalidDocument
from apiserver.stores.documents.paging import pages_by_id
from apiserver.stores.documents.query import (
    AnyOf,
    AtLeast,
    Document,
    Filter,
    FindQuery,
    HasSize,
    In,
    Matches,
    Sort,
    Unequal,
    Update,
)
from apiserver.stores.documents.scoped import CompanyDocuments
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore
from tests.contract.document_stores import fill, ids, store

__all__ = ["store"]

pytestmark = pytest.mark.anyio


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
    "search": lambda store: store.search("things", FindQuery({})),
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
    methods = vars(DocumentReads) | vars(DocumentStore)
    public = {name for name, method in methods.items() if callable(method) and not name.startswith("_")}
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
