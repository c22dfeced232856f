"""The schema in MongoDB: set up once, held against what is there, and named where it differs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.database import Database

from apiserver.stores.documents.base import DocumentStoreError
from apiserver.stores.documents.indexes import INDEXES
from apiserver.stores.documents.mongo.layout import index_key, unique_key
from apiserver.stores.documents.mongo.migrations import ENGINE, indexes_of, schema_at
from apiserver.stores.documents.mongo.store import MongoDocumentStore
from apiserver.stores.migrations import Step, migrate, steps_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def uri(mongodb_url: str, mongodb_database: str) -> str:
    return f"{mongodb_url}/{mongodb_database}"


@pytest.fixture
def database(uri: str) -> Iterator[Database[dict[str, Any]]]:
    with MongoClient[dict[str, Any]](uri) as client:
        yield client.get_default_database()


async def opened(uri: str, *, migrate: bool = False) -> None:
    """Open a store at the address, and close it."""
    store = MongoDocumentStore(uri, migrate=migrate)
    await store.open()
    await store.close()


def compared(
    collection: str, key: dict[str, int], *, unique: bool = False
) -> tuple[str, tuple[tuple[str, int], ...], bool]:
    return collection, tuple(key.items()), unique


def test_the_steps_make_the_indexes_that_are_declared() -> None:
    wanted = {compared(index.collection, index_key(index)) for index in INDEXES}
    wanted |= {compared(index.collection, unique_key(index), unique=True) for index in INDEXES if index.unique}
    # Lists, which only MongoDB keeps indexes of: which tasks have a model, what is below a project.
    wanted |= {compared("tasks", {path: 1}) for path in ("models.input.model", "models.output.model")}
    wanted |= {compared("projects", {"path": 1})}
    made = [
        compared(collection, index["key"], unique=index.get("unique", False))
        for collection, indexes in indexes_of(steps_of(ENGINE)).items()
        for index in indexes.values()
    ]
    assert sorted(made) == sorted(wanted)


async def test_the_schema_is_set_up_once(uri: str, database: Database[dict[str, Any]]) -> None:
    with pytest.raises(DocumentStoreError, match="has no schema yet: run `apiserver migrate`"):
        await opened(uri)
    assert database.list_collection_names() == []
    await opened(uri, migrate=True)
    await opened(uri)
    await opened(uri, migrate=True)
    assert [step["name"] for step in database.schema_steps.find()] == [step.name for step in steps_of(ENGINE)]


async def test_many_may_migrate_at_once(uri: str) -> None:
    await asyncio.gather(*(opened(uri, migrate=True) for _ in range(4)))
    await opened(uri)


async def test_a_newer_schema_is_refused(uri: str, database: Database[dict[str, Any]]) -> None:
    await opened(uri, migrate=True)
    database.schema_steps.insert_one({"_id": 99, "name": "0099_future", "release": "99.0.0"})
    for migrating in (False, True):
        with pytest.raises(DocumentStoreError, match="schema 99, made by a newer version"):
            await opened(uri, migrate=migrating)


async def test_an_index_that_is_gone_or_different_is_named(uri: str, database: Database[dict[str, Any]]) -> None:
    await opened(uri, migrate=True)
    database.tasks.drop_index("status")
    database.drop_collection("queues")
    database.queues.create_index([("name", 1)], name="unique:company,name")
    with pytest.raises(DocumentStoreError) as refused:
        await opened(uri)
    assert "'tasks' lacks the index 'status'" in str(refused.value)
    assert "the index 'unique:company,name' of 'queues' is" in str(refused.value)


async def test_documents_that_break_a_new_unique_index_are_told(uri: str, database: Database[dict[str, Any]]) -> None:
    database.queues.insert_many([{"_id": number, "_unique": {"company,name": {"company": "c"}}} for number in (1, 2)])
    async with schema_at(uri) as (schema, _):
        with pytest.raises(DocumentStoreError, match="0001_indexes makes an index of 'queues' unique, but documents"):
            await migrate(schema, steps_of(ENGINE))
        assert await schema.applied() == {}


async def test_later_steps_are_applied_alone(uri: str, database: Database[dict[str, Any]]) -> None:
    await opened(uri, migrate=True)
    index = {"name": "fresh", "key": {"fresh": 1}}
    later = Step(99, "0099_later", [{"createIndexes": "tasks", "indexes": [index]}])
    async with schema_at(uri) as (schema, _):
        assert await migrate(schema, [*steps_of(ENGINE), later]) == [later]
        assert await schema.problems([*steps_of(ENGINE), later]) == []
    assert "fresh" in database.tasks.index_information()
