"""How far events are followed, and whose: newcomers wait until theirs are."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Set

from apiserver.events.changes import Cursor
from apiserver.events.model import Owner
from apiserver.stores.events.base import EventStoreBusy

#: Seconds for which a newcomer waits until its tasks are followed.
PATIENCE = 15.0


class Closed(Exception):
    """Nobody is followed any more, because the server stops."""


class Reach:
    """The events of these owners are followed, and told up to the cursor."""

    def __init__(self) -> None:
        self.cursor: Cursor = None
        self.text = ""
        """The signed text of the cursor; empty before there is one."""
        self.is_closed = False
        self.more = asyncio.Event()
        """Set when further owners are to be followed."""
        self._owners: Set[Owner] = frozenset()
        self._newcomers: list[asyncio.Future[None]] = []

    def advance(self, cursor: Cursor, text: str) -> None:
        """All up to this cursor is told, or is about to be."""
        self.cursor, self.text = cursor, text

    def cover(self, owners: Set[Owner]) -> None:
        """These owners are followed. Newcomers look whether theirs are among them."""
        self._owners = owners
        self._wake()

    def close(self) -> None:
        """No events are followed any more."""
        self.is_closed = True
        self._wake()

    async def until_covered(self, owners: Callable[[], Set[Owner]]) -> None:
        """Return when all these owners are followed; they may change meanwhile. Raises Closed and EventStoreBusy."""
        try:
            async with asyncio.timeout(PATIENCE):
                while self.cursor is None or not owners() <= self._owners:
                    if self.is_closed:
                        raise Closed
                    newcomer = asyncio.get_running_loop().create_future()
                    self._newcomers.append(newcomer)
                    self.more.set()
                    await newcomer
        except TimeoutError:
            raise EventStoreBusy("tasks cannot be followed now", retry_after=2, overloaded=False) from None

    def _wake(self) -> None:
        newcomers, self._newcomers = self._newcomers, []
        for newcomer in newcomers:
            if not newcomer.done():
                newcomer.set_result(None)
