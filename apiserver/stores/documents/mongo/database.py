"""One MongoDB database. Only this module uses the driver motor, as its end of life is announced.

Every method raises the store's own errors. A majority of the replica set acknowledges a write, from its journals, and
reads ask the primary. So an acknowledged write is found, and is not lost.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from bson import decode_all
from bson.codec_options import TypeDecoder, TypeRegistry
from bson.int64 import Int64
from pymongo.errors import ServerSelectionTimeoutError
from pymongo.uri_parser import parse_uri

from apiserver.stores.documents.base import DocumentStoreBusy, DocumentStoreError
from apiserver.stores.documents.mongo.errors import RETRY_AFTER, errors
from apiserver.stores.documents.query import Counted

Stored = dict[str, Any]
Query = Mapping[str, Any]
Projection = Mapping[str, int] | None

DEFAULT_NAME = "events"

#: Options that an address may change. With these, no call waits long for a server that is away.
_OPTIONS: dict[str, Any] = {
    "appname": "apiserver",
    "serverSelectionTimeoutMS": 3000,
    "connectTimeoutMS": 3000,
    "heartbeatFrequencyMS": 5000,
    "socketTimeoutMS": 30_000,
    "waitQueueTimeoutMS": 10_000,
}
#: Options that an address may not change.
_KEPT: dict[str, Any] = {"w": "majority", "journal": True, "readPreference": "primary", "tz_aware": False}
_THREADS = 32
_MOST_OF_A_REPLY = 1000
"""Documents of a reply. The first reply has only one, as the size of the documents is not known yet."""
_REPLY = 4 * 2**20
"""Bytes of the replies that follow, about. MongoDB's replies have up to 16 MB; those of other servers may have more."""
_LARGE, _LARGE_SECONDS = 2**18, 60
"""Bytes of a large document; seconds for which a collection with large documents is expected to have more of them."""
_FIRST_AT_ONCE = 4
"""First replies that are read at a time, as their documents may have any size. Large ones are read one at a time."""
_DECODED = 3
_EACH_ZERO = 32
_REFUSING = 1.0
"""Seconds for which a server that could not be reached is not asked. Otherwise each call would wait for it."""


@dataclass(frozen=True, slots=True)
class Find:
    """What MongoDB is asked to find. A `limit` of 0 is none."""

    filter: Query
    projection: Projection = None
    sort: Sequence[tuple[str, int]] = ()
    skip: int = 0
    limit: int = 0

    @property
    def options(self) -> dict[str, Any]:
        """The arguments of the driver's `find`."""
        options: dict[str, Any] = {"filter": self.filter, "projection": self.projection, "sort": self.sort or None}
        return {**options, "skip": self.skip, "limit": self.limit}


class _PlainInteger(TypeDecoder):
    """Turns 64-bit numbers of BSON into Python's int."""

    bson_type = Int64

    def transform_bson(self, value: Any) -> int:
        return int(value)


class Database:
    """The database in a MongoDB address ("events" if it has none). For use by one event loop at a time."""

    def __init__(self, uri: str, *, patient: bool = False) -> None:
        """`patient`: commands have no time limit, as making an index of many documents takes long."""
        self._uri = uri
        self._options = {**_OPTIONS, "socketTimeoutMS": 0} if patient else _OPTIONS
        self._client: Any = None
        self._database: Any = None
        self._free: asyncio.Semaphore
        self._first_turns: asyncio.Semaphore
        self._large_turns: asyncio.Semaphore
        self._large_until: dict[str, float] = {}
        self._refused_until = 0.0
        self._changes = 0

    @property
    def changes(self) -> int:
        """A number that differs after each write, even after one that failed, as a part of it may have been done."""
        return self._changes

    @property
    def name(self) -> str:
        """The name of the database, once it is open."""
        return str(self._opened().name)

    async def open(self) -> None:
        """Connect; DocumentStoreError if the address or its options are wrong, or the server is away."""
        os.environ.setdefault("MOTOR_MAX_WORKERS", str(_THREADS))
        from motor.motor_asyncio import AsyncIOMotorClient

        try:
            with errors():
                given = {name.lower() for name in parse_uri(self._uri)["options"]}
                options = {name: value for name, value in self._options.items() if name.lower() not in given}
                registry = TypeRegistry([_PlainInteger()])
                self._client = AsyncIOMotorClient(self._uri, **options, **_KEPT, type_registry=registry)
        except (ValueError, OSError) as error:
            raise DocumentStoreError(f"MongoDB: {error}") from None
        self._database = self._client.get_default_database(DEFAULT_NAME)
        self._free, self._refused_until = asyncio.Semaphore(_THREADS), 0.0
        self._first_turns, self._large_turns = asyncio.Semaphore(_FIRST_AT_ONCE), asyncio.Semaphore(1)
        await self.command({"ping": 1})

    async def close(self) -> None:
        """Close all connections. A second call does nothing."""
        if self._client is not None:
            self._client.close()
        self._client = self._database = None

    async def command(self, command: Query) -> Stored:
        """The answer to a database command."""
        async with self._asking():
            answer: Stored = await self._opened().command(command)
            return answer

    async def collections(self) -> list[str]:
        """The names of all collections, sorted."""
        async with self._asking():
            return sorted(await self._opened().list_collection_names())

    async def indexes(self, collection: str) -> list[Stored]:
        """The indexes of a collection, as `listIndexes` returns them; none if there is no such collection."""
        async with self._asking(collection):
            found: list[Stored] = await self._opened()[collection].list_indexes().to_list(None)
            return found

    async def find(self, collection: str, find: Find, counted: Counted | None = None) -> list[Stored]:
        """The documents that are found. `counted` gets their bytes before they are decoded."""
        async with self._asking(collection):
            if counted is None:
                documents: list[Stored] = await self._opened()[collection].find(**find.options).to_list(None)
                return documents
            async with aclosing(self._batches(collection, find, counted)) as batches:
                return [stored async for batch in batches for stored in batch]

    async def batches(self, collection: str, find: Find) -> AsyncGenerator[list[Stored]]:
        """The documents that are found, some at a time. Each batch is read when the caller asks for it."""
        with self._failing(collection):
            async with aclosing(self._batches(collection, find)) as batches:
                async for batch in batches:
                    yield batch

    async def _batches(
        self, collection: str, find: Find, counted: Counted | None = None
    ) -> AsyncGenerator[list[Stored]]:
        """The replies to a query. Their sizes so far decide how many documents the next one should have."""
        opened = self._opened()[collection]
        cursor = opened.find_raw_batches(**find.options)
        try:
            at_once, size, documents = 1, 0, 0
            while cursor.alive:
                cursor.delegate._batch_size = at_once  # PyMongo's method for this works only before the first reply
                async with self._turn(collection, size / documents if documents else None):
                    reply = await anext(cursor, b"")
                    if counted is not None:
                        counted(_memory_of(reply))
                    if len(reply) > _LARGE:
                        batch: list[Stored] = await asyncio.to_thread(decode_all, reply, opened.codec_options)
                    else:
                        batch = decode_all(reply, opened.codec_options)
                if not batch:
                    continue
                size, documents = size + len(reply), documents + len(batch)
                if size > _LARGE * documents:
                    self._large_until[collection] = time.monotonic() + _LARGE_SECONDS
                else:
                    self._large_until.setdefault(collection, 0)
                del reply
                yield batch
                at_once = min(max(_REPLY * documents // size, 1), _MOST_OF_A_REPLY)
        finally:
            if cursor.alive:
                await cursor.close()

    def _turn(self, collection: str, size: float | None) -> AbstractAsyncContextManager[None]:
        """The turn of a reply whose documents have about `size` bytes (None: not known yet)."""
        if size is None:
            may_be_large = time.monotonic() < self._large_until.get(collection, math.inf)
            return self._large_turns if may_be_large else self._first_turns
        return self._large_turns if size > _LARGE else nullcontext()

    async def aggregate(
        self, collection: str, pipeline: Sequence[Query], counted: Counted | None = None
    ) -> list[Stored]:
        """The results of a pipeline on the collection. `counted` gets their bytes as they are read."""
        async with self._asking(collection):
            cursor = self._opened()[collection].aggregate(pipeline, allowDiskUse=True)
            if counted is None:
                found: list[Stored] = await cursor.to_list(None)
                return found
            found = []
            async for result in cursor:
                counted(len(repr(result)))
                found.append(result)
            return found

    async def count(self, collection: str, query: Query) -> int:
        """How many documents a query finds."""
        async with self._asking(collection):
            return int(await self._opened()[collection].count_documents(query))

    async def insert(self, collection: str, documents: Sequence[Stored]) -> None:
        """Add documents. After an error, some of them may be there."""
        async with self._writing(collection):
            await self._opened()[collection].insert_many(documents)

    async def update(self, collection: str, query: Query, update: Query, *, many: bool = False) -> int:
        """Update the first (or every) document that a query finds; return how many there were."""
        async with self._writing(collection):
            opened = self._opened()[collection]
            answer = await (opened.update_many if many else opened.update_one)(query, update)
            return int(answer.matched_count)

    async def find_and_update(self, collection: str, query: Query, update: Query) -> Stored | None:
        """Update the first document that a query finds, and return it as it was before that."""
        async with self._writing(collection):
            found: Stored | None = await self._opened()[collection].find_one_and_update(query, update)
            return found

    async def delete(self, collection: str, query: Query) -> int:
        """Delete every document that a query finds; return how many there were."""
        async with self._writing(collection):
            return int((await self._opened()[collection].delete_many(query)).deleted_count)

    def _opened(self) -> Any:
        if self._database is None:
            raise DocumentStoreError("the document store is not open")
        return self._database

    @asynccontextmanager
    async def _asking(self, collection: str = "") -> AsyncIterator[None]:
        """Ask the server inside the block, once one of motor's threads is free."""
        self._opened()
        async with self._free:
            with self._failing(collection):
                yield

    @asynccontextmanager
    async def _writing(self, collection: str) -> AsyncIterator[None]:
        """As `_asking`, for a request that changes documents."""
        try:
            async with self._asking(collection):
                yield
        finally:
            self._changes += 1

    @contextmanager
    def _failing(self, collection: str) -> Iterator[None]:
        """Ask the server inside the block, unless it was just away; turn all errors into the store's own."""
        if time.monotonic() < self._refused_until:
            raise DocumentStoreBusy("MongoDB does not answer", retry_after=RETRY_AFTER)
        with errors(collection):
            try:
                yield
            except ServerSelectionTimeoutError:
                self._refused_until = time.monotonic() + _REFUSING
                raise


def _memory_of(reply: bytes) -> int:
    """About how many bytes the documents of a reply take when they are decoded. The embedded store counts alike.

    Small documents take about three times their bytes. A large one may be a single long text, which takes its bytes, or
    many small values, which take much more. Each value has a few zeros among its bytes, such as at the end of its name,
    so zeros are counted.
    """
    total = start = 0
    while start < len(reply):
        size = int.from_bytes(reply[start : start + 4], "little")
        end = start + size
        total += _DECODED * size if size < _LARGE else max(size, _EACH_ZERO * reply.count(0, start, end))
        start = end
    return total
