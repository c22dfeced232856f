"""No call of one company sees, counts, changes or removes a document of another, whatever it is given.

What another has made public it sees, and cannot change or remove.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from apiserver.stores.documents.base import DuplicateDocument, InvalidFilter
from apiserver.stores.documents.query import AllOf, AnyOf, Document, Filter, In, NoneOf, NotIn, Unequal, Update
from apiserver.stores.documents.scoped import CompanyDocuments, VisibleDocuments
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore

pytestmark = pytest.mark.anyio

MINE: Document = {"id": "mine", "company": "me", "name": "m", "tags": ["x"], "params": {"a": {"b": 1}}}
THEIRS: Document = {"id": "theirs", "company": "them", "name": "t", "tags": ["x", "secret"], "params": {"a": {"c": 1}}}

PUBLIC: list[Document] = [
    {"id": "theirs", "company": "them", "public": True, "name": "t"},
    {"id": "mine", "company": "me", "public": True, "name": "m"},
    {"id": "private", "company": "me", "name": "p"},
    {"id": "secret", "company": "them", "name": "s"},
]

#: Filters that match THEIRS in the store, and whether they match MINE, too.
TRICKS: list[tuple[Filter, bool]] = [
    ({}, True),
    ({"id": "theirs"}, False),
    ({"company": "them"}, False),
    ({"company": Unequal("me")}, False),
    ({"company": Unequal(None)}, True),
    ({"company": In(["me", "them"])}, True),
    ({"company": NotIn(["me"])}, False),
    (AnyOf([{"company": "them"}, {}]), True),
    (AnyOf([{"id": "theirs"}, {"id": "mine"}]), True),
    (NoneOf([{"company": "me"}]), False),
    (AllOf([AnyOf([{"company": "them"}])]), False),
]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteDocumentStore]:
    opened = SqliteDocumentStore(tmp_path / "documents.db")
    await opened.open()
    await opened.insert("things", [MINE, THEIRS])
    yield opened
    await opened.close()


@pytest.fixture
def mine(store: SqliteDocumentStore) -> CompanyDocuments:
    return CompanyDocuments(store, "me")


async def theirs(store: SqliteDocumentStore) -> list[Document]:
    return await store.find("things", {"company": "them"})


def test_every_method_is_tested_here() -> None:
    methods = {name for name, _ in inspect.getmembers(CompanyDocuments, inspect.iscoroutinefunction)}
    assert {name for name in methods if not name.startswith("_")} == {
        *("insert", "search", "find", "find_one", "find_kept", "count", "count_by", "count_items", "distinct"),
        *("varieties", "own_public"),
        *("update", "find_and_update", "delete", "make_public", "make_private", "sees_others"),
    }


async def test_whether_there_is_anything_public_of_others(store: SqliteDocumentStore) -> None:
    mine = VisibleDocuments(store, "me")
    assert not await mine.sees_others("things")
    await CompanyDocuments(store, "me").make_public("things", ["mine"], {})
    assert not await mine.sees_others("things")
    await CompanyDocuments(store, "them").make_public("things", ["theirs"], {})
    assert await mine.sees_others("things")
    assert not await mine.sees_others("nothing")


@pytest.mark.test
@pytest.mark.parametrize("view", [CompanyDocuments, VisibleDocuments])
@pytest.mark.parametrize(("filter", "matches"), TRICKS)
async def test_reads(store: SqliteDocumentStore, view: type[VisibleDocuments], filter: Filter, matches: bool) -> None:
    assert THEIRS in await store.find("things", filter)
    mine = view(store, "me")
    assert await mine.find("things", filter) == [MINE] * matches
    one = await mine.find_one("things", filter, sort=[("company", -1)], projection=["name"])
    assert one == ({"id": "mine", "name": "m"} if matches else None)
    assert await mine.count("things", filter) == matches
    assert await mine.count_by("things", filter, ["company"]) == ({("me",): 1} if matches else {})
    assert await mine.count_items("things", filter, "company") == ({"me": 1} if matches else {})
    assert await mine.distinct("things", "tags", filter) == ["x"] * matches
    assert await mine.varieties("things", "params", filter) == [{"id": "mine", "params": MINE["params"]}] * matches


@pytest.mark.test
@pytest.mark.parametrize(("filter", "matches"), TRICKS)
async def test_writes(store: SqliteDocumentStore, mine: CompanyDocuments, filter: Filter, matches: bool) -> None:
    changed = [{**MINE, "name": name} for name in ("1", "2", "3")]
    first, second, third = (Update(set={"name": one["name"]}) for one in changed)
    assert await mine.update("things", filter, first, many=True) == matches
    assert await store.find("things", {"company": "me"}) == [changed[0] if matches else MINE]
    assert await mine.update("things", filter, second) == matches
    assert await store.find("things", {"company": "me"}) == [changed[1] if matches else MINE]
    assert await mine.find_and_update("things", filter, third) == (changed[2] if matches else None)
    assert await mine.delete("things", filter) == matches
    assert await store.find("things", {}, sort=[("id", 1)]) == [MINE] * (not matches) + [THEIRS]


async def test_what_is_inserted_is_ones_own(store: SqliteDocumentStore, mine: CompanyDocuments) -> None:
    await mine.insert("things", {"id": "new", "company": "them", "public": True})
    assert await store.find_one("things", {"id": "new"}) == {"id": "new", "company": "me"}
    with pytest.raises(DuplicateDocument):
        await mine.insert("things", {"id": "theirs"})
    assert await theirs(store) == [THEIRS]


async def test_what_is_upserted_is_ones_own(store: SqliteDocumentStore, mine: CompanyDocuments) -> None:
    fresh = {"id": "new", "company": "them"}
    assert await mine.update("things", {"id": "new"}, Update(set={"n": 1}), upsert=fresh) == 0
    assert await store.find_one("things", {"id": "new"}) == {"id": "new", "company": "me", "n": 1}
    with pytest.raises(DuplicateDocument):
        await mine.update("things", {"id": "theirs"}, Update(set={"n": 1}), upsert={"id": "theirs"})
    assert await theirs(store) == [THEIRS]


@pytest.mark.parametrize(
    "update",
    [
        Update(set={"company": "them"}),
        Update(set={"company.x": 1}),
        Update(unset=["company"]),
        Update(max={"company": "them"}),
        Update(add={"company": ["them"]}),
        Update(set={"public": True}),
        Update(unset=["public"]),
    ],
)
async def test_no_document_changes_its_company(
    store: SqliteDocumentStore, mine: CompanyDocuments, update: Update
) -> None:
    with pytest.raises(InvalidFilter, match="cannot be changed"):
        await mine.update("things", {}, update, many=True)
    with pytest.raises(InvalidFilter, match="cannot be changed"):
        await mine.find_and_update("things", {}, update)
    with pytest.raises(InvalidFilter, match="cannot be changed"):
        await mine.update("things", {"id": "new"}, update, upsert={"id": "new"})
    assert await store.find("things", {}, sort=[("id", 1)]) == [MINE, THEIRS]


async def test_an_update_may_name_ones_own_company(mine: CompanyDocuments) -> None:
    assert await mine.update("things", {"id": "mine"}, Update(set={**MINE, "name": "new"})) == 1


# --- public documents --------------------------------------------------------------------------------


@pytest.fixture
async def tasks(store: SqliteDocumentStore) -> SqliteDocumentStore:
    await store.insert("tasks", PUBLIC)
    return store


EVERY_ID = {"id": In(["theirs", "mine", "private", "secret"])}


@pytest.mark.test
@pytest.mark.parametrize("filter", [{}, EVERY_ID, {"company": Unequal(None)}, AnyOf([{"public": True}, {}])])
async def test_what_is_public_is_read_by_all_as_nobodys(tasks: SqliteDocumentStore, filter: Filter) -> None:
    visible = VisibleDocuments(tasks, "me")
    assert await visible.find("tasks", filter, sort=[("id", 1)]) == [
        {"id": "mine", "company": "", "name": "m"},
        {"id": "private", "company": "me", "name": "p"},
        {"id": "theirs", "company": "", "name": "t"},
    ]
    assert await visible.find("tasks", filter, projection=["company"], sort=[("id", 1)], skip=1) == [
        {"id": "private", "company": "me"},
        {"id": "theirs", "company": ""},
    ]
    assert await visible.find_one("tasks", {"id": "theirs"}) == {"id": "theirs", "company": "", "name": "t"}
    assert await visible.find_one("tasks", {"id": "secret"}) is None
    assert await visible.count("tasks", filter) == 3
    assert await visible.distinct("tasks", "name", filter) == ["m", "p", "t"]
    assert await visible.count_by("tasks", filter, ["name"]) == {("m",): 1, ("p",): 1, ("t",): 1}


async def test_who_keeps_a_public_document_is_known(tasks: SqliteDocumentStore) -> None:
    ids = ["theirs", "private", "secret"]
    kept = await VisibleDocuments(tasks, "me").find_kept("tasks", ids, ["id"])
    assert {one["id"]: one["company"] for one in kept} == {"theirs": "them", "private": "me"}
    assert await CompanyDocuments(tasks, "me").find_kept("tasks", ids, ["name"]) == [
        {"id": "private", "company": "me", "name": "p"}
    ]


async def test_what_is_public_is_changed_by_none(tasks: SqliteDocumentStore) -> None:
    mine = CompanyDocuments(tasks, "me")
    assert [document["id"] for document in await mine.find("tasks", {})] == ["private"]
    change = Update(set={"name": "changed"})
    for id in ("theirs", "mine", "secret"):
        assert await mine.find_one("tasks", {"id": id}) is None
        assert await mine.update("tasks", {"id": id}, change) == 0
        assert await mine.find_and_update("tasks", {"id": id}, change) is None
        assert await mine.delete("tasks", {"id": id}) == 0
    assert await mine.update("tasks", {}, change, many=True) == 1
    assert await mine.delete("tasks", {}) == 1
    assert await tasks.find("tasks", {}, sort=[("id", 1)]) == sorted(
        (one for one in PUBLIC if one["id"] != "private"), key=lambda one: str(one["id"])
    )


async def test_only_its_company_makes_a_document_public_and_private(tasks: SqliteDocumentStore) -> None:
    mine, every = CompanyDocuments(tasks, "me"), ["theirs", "mine", "private", "secret"]
    assert await mine.own_public("tasks", EVERY_ID) == ["mine"]
    assert await mine.make_public("tasks", every, {"n": 1}) == 1
    assert await tasks.find_one("tasks", {"id": "private"}) == {
        **{"id": "private", "company": "me", "name": "p"},
        **{"public": True, "n": 1},
    }
    assert await mine.make_private("tasks", every, {"n": 2}) == 2
    assert await tasks.find("tasks", {"company": "me"}, sort=[("id", 1)]) == [
        {"id": "mine", "company": "me", "name": "m", "n": 2},
        {"id": "private", "company": "me", "name": "p", "n": 2},
    ]
    assert await tasks.count("tasks", {"company": "them", "public": True}) == 1


async def test_only_tasks_models_and_projects_can_be_public(store: SqliteDocumentStore) -> None:
    await store.insert("queues", PUBLIC)
    assert await VisibleDocuments(store, "me").count("queues", {}) == 2
