"""When access keys were last used, and from where.

Each call with a key is noted in memory. What was noted is written once a minute, one update a key, so that calls cause
no writes. A login is written at once, if the last one was a minute ago. After a crash, up to a minute is missing.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

from apiserver.common.repeating import Repeating
from apiserver.common.times import utc_text
from apiserver.stores.documents.base import DocumentStore, DocumentStoreError
from apiserver.stores.documents.query import Filter, Update

#: Seconds between two writes of the same key.
SECONDS = 60.0
#: Keys that are written with one call of the store.
_AT_ONCE = 500


class KeyUses:
    """The uses of access keys on this server, which are written from time to time."""

    def __init__(self, documents: DocumentStore) -> None:
        self._documents = documents
        self._noted: dict[str, float] = {}
        """By key: when it was used since the last write, in epoch seconds."""
        self._places: dict[str, str] = {}
        self._logins: dict[str, float] = {}
        """By key: when its last login was written."""
        self._writing = Repeating(
            "noting uses of access keys", self.write, SECONDS, expected=(DocumentStoreError,), at_once=False
        )

    def start(self) -> None:
        """Write the uses from time to time."""
        self._writing.start()

    def note(self, key: str, place: str = "") -> None:
        """A valid key was used now, from a place if that is known: an address, or the name of a worker."""
        self._noted[key] = time.time()
        if place:
            self._places[key] = place

    async def logged_in(self, key: str, place: str) -> None:
        """A key was used for a login."""
        self.note(key, place)
        if time.monotonic() - self._logins.get(key, -SECONDS) >= SECONDS:
            self._logins[key] = time.monotonic()
            await self.write()

    async def write(self) -> None:
        """Write the noted uses. Raises DocumentStoreError; then a later call writes it."""
        noted, places = self._noted, self._places
        self._noted, self._places = {}, {}
        updates: list[tuple[Filter, Update]] = []
        for key, used in noted.items():
            place = {"last_used_from": places[key]} if key in places else {}
            updates.append(
                ({"key": key}, Update(set={"last_used": utc_text(datetime.fromtimestamp(used, UTC)), **place}))
            )
        try:
            for first in range(0, len(updates), _AT_ONCE):
                await self._documents.update_each("credentials", updates[first : first + _AT_ONCE])
        except BaseException:
            self._noted, self._places = noted | self._noted, places | self._places
            raise

    async def close(self) -> None:
        """Stop the job, and write the uses that are left."""
        await self._writing.close()
        await self.write()
