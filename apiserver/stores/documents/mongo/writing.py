"""Changes documents, each in one atomic step, even if other servers change the same ones.

MongoDB applies an update by itself if it surely means the same there (`native.py`). Any other update is applied here:
read the document, apply the update, and write the result if the document still has the revision that was read. If not,
begin again. So an update means the same in all engines, and none is lost. For example, two servers add a tag:

    server A reads revision 1, tags [a]
    server B reads revision 1, tags [a]
    server A writes tags [a, b] where the revision is 1: done, the revision is 2
    server B writes tags [a, c] where the revision is 1: no match, so it reads again, and writes [a, b, c]

The write also repeats the condition and the changed fields, as some servers with MongoDB's protocol may read a document
while it is being changed. There are no transactions. If an update of several documents fails halfway, it is undone.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from bson.objectid import ObjectId

from apiserver.stores.documents.base import DocumentStoreBusy, DocumentStoreError, DuplicateDocument
from apiserver.stores.documents.dialect.filters import Condition, Field, names_one, paths_of
from apiserver.stores.documents.dialect.queries import ParsedQuery
from apiserver.stores.documents.dialect.updates import ParsedUpdate
from apiserver.stores.documents.mongo.database import Database, Stored
from apiserver.stores.documents.mongo.layout import REVISION, Layout, decode, name_of, plain
from apiserver.stores.documents.mongo.native import MANY_FIELDS, NativeUpdate
from apiserver.stores.documents.mongo.reading import Reader
from apiserver.stores.documents.mongo.translate import projection_of, query_of
from apiserver.stores.documents.query import AllOf, Document, Equal

_LONGEST = 10.0
"""Seconds after which a change is given up, if others change the document all the time."""
_LONGEST_PAUSE = 0.05
_AT_ONCE = 16
_DELETED_AT_ONCE = 500


class Writer:
    """Writes to collections of a database."""

    def __init__(self, database: Database, reader: Reader) -> None:
        self._database = database
        self._reader = reader

    async def insert(self, layout: Layout, documents: Sequence[Document]) -> None:
        """Add all documents, or none."""
        revision = ObjectId()
        stored = [layout.encode(document, revision) for document in documents]
        if not stored:
            return
        try:
            await self._database.insert(layout.collection, stored)
        except BaseException:
            if len(stored) > 1:
                with suppress(DocumentStoreError):
                    ids = [document["_id"] for document in stored]
                    await self._database.delete(layout.collection, {"_id": {"$in": ids}, REVISION: revision})
            raise

    async def update(
        self,
        layout: Layout,
        condition: Condition,
        change: ParsedUpdate,
        native: NativeUpdate | None,
        upsert: Document | None,
    ) -> int:
        """Update one match, or insert `upsert` with the update applied; return how many matched."""
        for refused in (False, True):
            if await self._update_one(layout, condition, change, native):
                return 1
            if upsert is None:
                return 0
            try:
                await self.insert(layout, [change.apply(plain(upsert))])
                return 0
            except DuplicateDocument:  # another server may have inserted it just now, so try to update it
                if refused:
                    raise
        raise AssertionError("unreachable")

    async def find_and_update(
        self,
        layout: Layout,
        condition: Condition,
        change: ParsedUpdate,
        native: NativeUpdate | None,
    ) -> tuple[Document, Document] | None:
        """Update one match; return it as it was before, and as it is now."""
        query = query_of(condition)
        if native is not None and query.exact and names_one(condition):
            guarded = {"$and": [query.filter, *native.guard]}
            found = await self._database.find_and_update(layout.collection, guarded, native.update)
            if found is not None:
                old = decode(found)
                return old, change.apply(plain(old))
            if not native.guard:
                return None
        return await self._change(layout, condition, change, None)

    async def update_all(
        self, layout: Layout, condition: Condition, change: ParsedUpdate, native: NativeUpdate | None
    ) -> int:
        """Update every match, or none if the update does not fit one of them; return how many there were."""
        query = query_of(condition)
        if native is not None and not native.guard and query.exact:
            return await self._database.update(layout.collection, query.filter, native.update, many=True)
        needed = _needed(layout, condition, change)
        found = await self._reader.find_stored(layout.collection, ParsedQuery(condition), needed)
        revision = ObjectId()
        before = [decode(stored) for stored in found]
        updates = [layout.changes(change.apply(plain(old)), change.paths, revision) for old in before]
        written: list[Document] = []

        async def write(stored: Stored, old: Document, update: dict[str, Any]) -> None:
            if await self._database.update(layout.collection, _unchanged(layout, stored, condition, change), update):
                written.append(old)
                return
            same = AllOf([Field(("id",), Equal(old["id"])), condition])
            if changed := await self._change(layout, same, change, needed, revision=revision):
                written.append(changed[0])

        try:
            for start in range(0, len(found), _AT_ONCE):
                part = slice(start, start + _AT_ONCE)
                writes = map(write, found[part], before[part], updates[part])
                for error in await asyncio.gather(*writes, return_exceptions=True):
                    if error is not None:
                        raise error
        except BaseException:
            with suppress(DocumentStoreError):
                for old in written:
                    update = layout.changes(old, change.paths, ObjectId())
                    await self._database.update(layout.collection, {"_id": old["id"], REVISION: revision}, update)
            raise
        return len(written)

    async def delete(self, layout: Layout, condition: Condition) -> int:
        """Delete every match; return how many there were."""
        query = query_of(condition)
        if query.exact:
            return await self._database.delete(layout.collection, query.filter)
        deleted, patience = 0, _Patience(layout.collection)
        while True:
            found = [_at_revision(stored) async for stored in self._reader.matching(layout.collection, condition)]
            before = deleted
            for start in range(0, len(found), _DELETED_AT_ONCE):
                batch = {"$or": found[start : start + _DELETED_AT_ONCE]}
                deleted += await self._database.delete(layout.collection, batch)
            if deleted - before == len(found):
                return deleted
            await patience.wait()

    async def _update_one(
        self, layout: Layout, condition: Condition, change: ParsedUpdate, native: NativeUpdate | None
    ) -> bool:
        """Update one match; return whether there is one."""
        query = query_of(condition)
        if native is not None and query.exact:
            guarded = {"$and": [query.filter, *native.guard]}
            if await self._database.update(layout.collection, guarded, native.update):
                return True
            if not native.guard:
                return False
        return await self._change(layout, condition, change, _needed(layout, condition, change)) is not None

    async def _change(
        self,
        layout: Layout,
        condition: Condition,
        change: ParsedUpdate,
        needed: dict[str, int] | None,
        revision: ObjectId | None = None,
    ) -> tuple[Document, Document] | None:
        """Update one match, of which the `needed` fields are read; return it as it was, and as it is now."""
        patience = _Patience(layout.collection)
        while True:
            found = await self._reader.first(layout.collection, condition, needed)
            if found is None:
                return None
            old = decode(found)
            new, update = await _worked_out(layout, old, change, revision or ObjectId())
            if await self._database.update(layout.collection, _unchanged(layout, found, condition, change), update):
                return old, new
            await patience.wait()


class _Patience:
    """Pauses before another attempt, for up to `_LONGEST` seconds in all."""

    def __init__(self, collection: str) -> None:
        self._collection = collection
        self._end = time.monotonic() + _LONGEST
        self._pause = 0.001

    async def wait(self) -> None:
        """Pause; raise DocumentStoreBusy if the time is over."""
        if time.monotonic() > self._end:
            raise DocumentStoreBusy(f"{self._collection}: a document is changed by others all the time")
        await asyncio.sleep(random.uniform(0, self._pause))
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)


async def _worked_out(
    layout: Layout, old: Document, change: ParsedUpdate, revision: ObjectId
) -> tuple[Document, dict[str, Any]]:
    """The changed document, and the update to write; for very many fields, made in a thread."""

    def work() -> tuple[Document, dict[str, Any]]:
        new = change.apply(plain(old))
        return new, layout.changes(new, change.paths, revision)

    return await asyncio.to_thread(work) if len(change.paths) > MANY_FIELDS else work()


def _needed(layout: Layout, condition: Condition, change: ParsedUpdate) -> dict[str, int]:
    """The fields to read of a document that is to be updated."""
    roots = change.roots | (layout.unique_roots if change.roots & layout.unique_roots else set())
    return {**projection_of([*paths_of(condition), *((root,) for root in roots)]), REVISION: 1}


def _at_revision(stored: Stored) -> dict[str, Any]:
    """The query for a document if it still has the revision that was read."""
    return {"_id": stored["_id"], REVISION: stored.get(REVISION)}


def _unchanged(layout: Layout, stored: Stored, condition: Condition, change: ParsedUpdate) -> dict[str, Any]:
    """The same, if it also meets the condition, and has the same values in the changed fields, but for large ones."""
    names = [name_of((root,)) for root in change.roots if root not in layout.large]
    fields = {name: {"$eq": stored[name]} if name in stored else {"$exists": False} for name in names}
    return {"$and": [_at_revision(stored), fields, query_of(condition).filter]}
