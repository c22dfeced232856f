"""The schema in MongoDB: numbered steps set up indexes, and each start compares them with what is there.

A step is a list of database commands, each harmless if it is given twice. The collection `schema_steps` has a document
for each applied step.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from apiserver import __version__
from apiserver.common.times import utc_now
from apiserver.stores.documents.base import DocumentStoreError, DuplicateDocument
from apiserver.stores.documents.mongo.database import Database, Find
from apiserver.stores.migrations import SchemaError, Step, require, steps_of

ENGINE = "mongo"
RECORDS = "schema_steps"
_COMPARED = ("key", "unique", "sparse")


async def check_schema(database: Database, *, migrate: bool) -> None:
    """Return if the schema is that of this version; with `migrate`, apply missing steps first.

    DocumentStoreError says what differs and what to do; nothing may be written then.
    """
    try:
        await require(MongoSchema(database), steps_of(ENGINE), migrating=migrate)
    except SchemaError as error:
        raise DocumentStoreError(str(error)) from error


@asynccontextmanager
async def schema_at(uri: str) -> AsyncIterator[tuple[MongoSchema, list[Step]]]:
    """The schema of the documents at an address, and its steps, without opening the store."""
    database = Database(uri, patient=True)
    try:
        await database.open()
        yield MongoSchema(database), steps_of(ENGINE)
    finally:
        await database.close()


class MongoSchema:
    """The `migrations.Target` of one database. Its methods also raise DocumentStoreError."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def name(self) -> str:
        return f"MongoDB (database '{self._database.name}')"

    async def applied(self) -> dict[int, str]:
        return {found["_id"]: found["release"] for found in await self._database.find(RECORDS, Find({}))}

    async def apply(self, steps: Sequence[Step]) -> None:
        for step, command in ((one, command) for one in steps for command in one.content):
            try:
                await self._database.command(command)
            except DuplicateDocument:
                raise DocumentStoreError(
                    f"{self.name}: {step.name} makes an index of '{command['createIndexes']}' unique, "
                    "but documents that are there already have the same values"
                ) from None

    async def record(self, steps: Sequence[Step]) -> None:
        for step in steps:
            record = {"_id": step.number, "name": step.name, "applied": utc_now(), "release": __version__}
            with suppress(DuplicateDocument):  # another server has recorded it meanwhile
                await self._database.insert(RECORDS, [record])

    async def problems(self, steps: Sequence[Step]) -> list[str]:
        """The indexes that are missing, or are not as the steps say."""
        found = []
        for collection, wanted in indexes_of(steps).items():
            present = {index["name"]: _compared(index) for index in await self._database.indexes(collection)}
            for name, index in wanted.items():
                if name not in present:
                    found.append(f"'{collection}' lacks the index '{name}'")
                elif present[name] != _compared(index):
                    found.append(f"the index '{name}' of '{collection}' is {present[name]}, not {_compared(index)}")
        return found


def indexes_of(steps: Sequence[Step]) -> dict[str, dict[str, dict[str, Any]]]:
    """The indexes that all steps together make, by collection and name."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for command in (command for step in steps for command in step.content):
        if "createIndexes" in command:
            found.setdefault(command["createIndexes"], {}).update({i["name"]: i for i in command["indexes"]})
    return found


def _compared(index: dict[str, Any]) -> dict[str, Any]:
    given = {name: index[name] for name in _COMPARED if index.get(name)}
    return {**given, "key": [(name, int(direction)) for name, direction in index["key"].items()]}
