"""No call of one company sees, counts, changes or removes a document of another, whatever it is given."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from apiserver.stores.documents.base import Document, DuplicateDocument, Filter, InvalidFilter, Update
from apiserver.stores.documents.scoped import CompanyDocuments
from apiserver.stores.documents.sqlite import SqliteDocumentStore

pytestmark = pytest.mark.anyio

MINE: Document = {"id": "mine", "company": "me", "name": "m", "tags": ["x"]}
THEIRS: Document = {"id": "theirs", "company": "them", "name": "t", "tags": ["x", "secret"]}

TRICKS: list[Filter] = [
    {},
    {"id": "theirs"},
    {"company": "them"},
    {"company": {"$ne": "me"}},
    {"company": {"$exists": True}},
    {"company": {"$in": ["me", "them"]}},
    {"company": {"$not": {"$eq": "me"}}},
    {"$or": [{"company": "them"}, {}]},
    {"$or": [{"id": "theirs"}, {"id": "mine"}]},
    {"$nor": [{"company": "me"}]},
    {"$and": [{"$or": [{"company": "them"}]}]},
    {"tags": {"$elemMatch": {"$eq": "secret"}}},
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
    assert methods == {
        *("insert", "find", "find_one", "count", "count_by", "distinct", "update", "find_and_update", "delete")
    }


@pytest.mark.parametrize("filter", TRICKS)
async def test_reads(mine: CompanyDocuments, filter: Filter) -> None:
    assert all(document["company"] == "me" for document in await mine.find("things", filter))
    assert await mine.find_one("things", filter, sort=[("company", -1)], projection=["name"]) in (
        None,
        {"id": "mine", "name": "m"},
    )
    assert await mine.count("things", filter) <= 1
    assert ("them",) not in await mine.count_by("things", filter, ["company"])
    assert "secret" not in await mine.distinct("things", "tags", filter)


@pytest.mark.parametrize("filter", TRICKS)
async def test_writes(store: SqliteDocumentStore, mine: CompanyDocuments, filter: Filter) -> None:
    change = {"$set": {"name": "changed"}}
    assert await mine.update("things", filter, change, many=True) <= 1
    assert await mine.update("things", filter, change) <= 1
    assert await mine.find_and_update("things", filter, change, sort=[("company", -1)]) != {**THEIRS, "name": "changed"}
    assert await mine.delete("things", filter) <= 1
    assert await theirs(store) == [THEIRS]


async def test_what_is_inserted_is_ones_own(store: SqliteDocumentStore, mine: CompanyDocuments) -> None:
    await mine.insert("things", {"id": "new", "company": "them"})
    assert await store.find_one("things", {"id": "new"}) == {"id": "new", "company": "me"}
    with pytest.raises(DuplicateDocument):
        await mine.insert("things", {"id": "theirs"})
    assert await theirs(store) == [THEIRS]


async def test_what_is_upserted_is_ones_own(store: SqliteDocumentStore, mine: CompanyDocuments) -> None:
    fresh = {"id": "new", "company": "them"}
    assert await mine.update("things", {"id": "new"}, {"$set": {"n": 1}}, upsert=fresh) == 0
    assert await store.find_one("things", {"id": "new"}) == {"id": "new", "company": "me", "n": 1}
    with pytest.raises(DuplicateDocument):
        await mine.update("things", {"id": "theirs"}, {"$set": {"n": 1}}, upsert={"id": "theirs"})
    assert await theirs(store) == [THEIRS]


@pytest.mark.parametrize(
    "update",
    [
        {"$set": {"company": "them"}},
        {"$set": {"company.x": 1}},
        {"$unset": {"company": 1}},
        {"$max": {"company": "them"}},
        {"$addToSet": {"company": "them"}},
    ],
)
async def test_no_document_changes_its_company(
    store: SqliteDocumentStore, mine: CompanyDocuments, update: Update
) -> None:
    with pytest.raises(InvalidFilter, match="'company'"):
        await mine.update("things", {}, update, many=True)
    with pytest.raises(InvalidFilter, match="'company'"):
        await mine.find_and_update("things", {}, update)
    with pytest.raises(InvalidFilter, match="'company'"):
        await mine.update("things", {"id": "new"}, update, upsert={"id": "new"})
    assert await store.find("things", {}, sort=[("id", 1)]) == [MINE, THEIRS]


async def test_an_update_may_name_ones_own_company(mine: CompanyDocuments) -> None:
    assert await mine.update("things", {"id": "mine"}, {"$set": {**MINE, "name": "new"}}) == 1
