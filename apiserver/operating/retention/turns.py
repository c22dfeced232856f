"""Only one server, or command, deletes by retention at a time; and all of them know when that was last done.

Both are in one document. Whoever begins writes its name there, with a time at which its turn ends, and moves this time
on again and again. If it dies, somebody else may begin once that time has come. A time that is too far ahead does not
count: somebody's clock was wrong. If the documents are not shared, nobody else can be there.
"""

from __future__ import annotations

import asyncio
import math
import os
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from uuid import uuid4

from apiserver.common.times import from_now, utc_now
from apiserver.operating.retention.bounds import RetentionBounds
from apiserver.stores.documents.base import DocumentStore, DocumentStoreError, DuplicateDocument
from apiserver.stores.documents.query import AnyOf, Document, Filter, Greater, Less, Update

_COLLECTION, _ID = "retention", "retention"
#: Seconds by which the clocks of servers may differ. A time that is further ahead was noted when a clock was wrong.
AHEAD = 300.0


class Taken(Exception):
    """Somebody else deletes by retention now."""


async def last(documents: DocumentStore) -> Document:
    """The facts of the last run that ended: `ended`, `events`, `tasks` and `failures`; {} if there was none."""
    found = await documents.find_one(_COLLECTION, {"id": _ID}) or {}
    return found.get("last") or {}


async def note(documents: DocumentStore, *, events: int, tasks: int, failures: int) -> None:
    """Note that a run has ended, and what it did."""
    ended = {"ended": utc_now(), "events": events, "tasks": tasks, "failures": failures}
    await documents.update(_COLLECTION, {"id": _ID}, Update(set={"last": ended}))


class Turn:
    """The turn of one server or command."""

    def __init__(self, documents: DocumentStore, name: str, bounds: RetentionBounds) -> None:
        self._bounds = bounds
        self._documents = documents
        self._name = name
        self._kept = time.monotonic()

    def is_held(self) -> bool:
        """Whether the turn has surely not ended. It counts as lost if its end could not be moved for long."""
        return time.monotonic() - self._kept < self._bounds.turn_seconds / 2

    async def put_off(self) -> None:
        """Put off its end again and again, until somebody else has the turn."""
        while True:
            await asyncio.sleep(self._bounds.again_seconds)
            with suppress(DocumentStoreError):
                until = Update(set={"until": from_now(self._bounds.turn_seconds)})
                if not await self._documents.update(_COLLECTION, {"id": _ID, "by": self._name}, until):
                    self._kept = -math.inf
                    return
                self._kept = time.monotonic()


@asynccontextmanager
async def turn(documents: DocumentStore, bounds: RetentionBounds | None = None) -> AsyncIterator[Turn]:
    """Nobody else deletes by retention inside the block, while the turn is held. Taken: somebody does already."""
    name = f"{socket.gethostname()} {os.getpid()} {uuid4().hex[:8]}"
    bounds, now = bounds or RetentionBounds(), utc_now()
    free: Filter = {"id": _ID}
    if documents.shared:
        untrue = Greater(from_now(bounds.turn_seconds + AHEAD))
        free = AnyOf([{"id": _ID, "until": Less(now)}, {"id": _ID, "until": untrue}])
    claim: Document = {"id": _ID, "by": name, "begun": now, "until": from_now(bounds.turn_seconds)}
    try:
        await documents.update(_COLLECTION, free, Update(set=claim), upsert=claim)
    except DuplicateDocument:
        known = await documents.find_one(_COLLECTION, {"id": _ID}) or {}
        raise Taken(f"retention is under way since {known.get('begun')}, by {known.get('by')}") from None
    held = Turn(documents, name, bounds)
    putting_off = asyncio.create_task(held.put_off(), name="the turn of retention")
    try:
        yield held
    finally:
        putting_off.cancel()
        await asyncio.gather(putting_off, return_exceptions=True)
        await documents.update(_COLLECTION, {"id": _ID, "by": name}, Update(set={"until": ""}))
