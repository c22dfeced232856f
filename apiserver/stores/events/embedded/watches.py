"""Wakes those who watch owners when something of these changes. It costs those who add events nothing if nobody does.

The caller of every function holds the lock of the memtables, unless the function says otherwise.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from contextlib import suppress

from apiserver.events.model import Owner


class Watch:
    """Some owners, and those of them that changed since `take` was called."""

    def __init__(self, owners: Collection[Owner]) -> None:
        self.owners = owners
        self._changed: set[Owner] = set()
        self._loop = asyncio.get_running_loop()
        self._awake = asyncio.Event()

    def changed(self, owner: Owner) -> None:
        """Note that the owner changed."""
        if not self._changed:
            self.wake()
        self._changed.add(owner)

    def take(self) -> set[Owner]:
        """The owners that changed since the last call."""
        taken, self._changed = self._changed, set()
        return taken

    def wake(self) -> None:
        """Let `wait` return. Any thread may call this, also without the lock."""
        with suppress(RuntimeError):  # the loop is closed, so nobody waits
            self._loop.call_soon_threadsafe(self._awake.set)

    async def wait(self) -> None:
        """Return when there may be something to take. The caller does not hold the lock."""
        await self._awake.wait()
        self._awake.clear()


class Watches:
    """Everybody who watches owners."""

    def __init__(self) -> None:
        self._of: dict[Owner, set[Watch]] = {}

    def add(self, watch: Watch) -> None:
        """Wake this one from now on."""
        for owner in watch.owners:
            self._of.setdefault(owner, set()).add(watch)

    def remove(self, watch: Watch) -> None:
        """Wake it no more."""
        for owner in set(watch.owners):
            self._of[owner].discard(watch)
            if not self._of[owner]:
                del self._of[owner]

    def changed(self, owners: Iterable[Owner]) -> None:
        """Wake those who watch one of these owners, which have just changed."""
        if self._of:
            for owner in owners:
                for watch in self._of.get(owner, ()):
                    watch.changed(owner)

    def wake_all(self) -> None:
        """Wake everybody."""
        for watch in set().union(*self._of.values()):
            watch.wake()
