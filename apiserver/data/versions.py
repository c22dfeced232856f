"""Which version of the data an answer has, so that clients can keep it."""

from __future__ import annotations

from email.utils import formatdate

from apiserver.common.times import epoch_millis
from apiserver.data.calls import DataCall
from apiserver.events.changes import ChangesQuery
from apiserver.events.model import Owner
from apiserver.reading.scroll import InvalidScroll
from apiserver.tables.formats import Format

#: ETags that a client may send at once.
_MOST_TAGS = 4


class Version:
    """The versions of some owners' events. Each is a cursor of the store, signed, as an ETag.

    A client that sends it back gets 304 if nothing has changed since. It is another one for each answer, because a
    cursor is a place in the order of all events.
    """

    def __init__(self, call: DataCall, format: Format, owners: list[Owner]) -> None:
        self._events = call.backend.events
        self._scrolls = call.backend.scrolls
        self._documents = call.backend.visible_to(call.caller)
        self._owners = owners
        asked = call.request.scope["path"], call.request.scope.get("query_string", b"")
        self._query = ("data", *asked, format.ending, sorted(owners))

    async def now(self) -> str:
        """The ETag of an answer that is read after this returns."""
        changes = await self._events.changes(ChangesQuery(self._owners))
        return f'W/"{self._scrolls.encode(self._query, changes.cursor)}"'

    async def modified(self) -> str | None:
        """When the task last changed, as HTTP says times; None if there are several tasks."""
        if len(self._owners) != 1:
            return None
        found = await self._documents.find_one("tasks", {"id": self._owners[0].id}, projection=["last_update"])
        time = epoch_millis((found or {}).get("last_update"))
        return None if time is None else formatdate(time / 1000, usegmt=True)

    async def is_still(self, tag: str, *, only_grown: bool = False) -> bool:
        """Whether nothing has changed since an answer with this ETag was read; `only_grown`: or events were added."""
        try:
            cursor = self._scrolls.decode(self._query, tag.strip().removeprefix("W/").strip('"'))
        except InvalidScroll:
            return False
        changes = await self._events.changes(ChangesQuery(self._owners, cursor))
        return not any(changed.everything if only_grown else changed for changed in changes.owners.values())

    async def known_to(self, call: DataCall) -> str | None:
        """The ETag that the client has, if nothing has changed since."""
        for tag in call.headers.get("if-none-match", "").split(",")[:_MOST_TAGS]:
            if await self.is_still(tag):
                return tag.strip()
        return None
