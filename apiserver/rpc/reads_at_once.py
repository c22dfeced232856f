"""Limits how many reading calls of one user are handled at once. Further ones wait, first come, first served.

Between its reads, a handler works for some milliseconds on the event loop. If a thousand calls were handled at once,
all could go on in the same turn of the loop, and all others would wait for seconds. With this limit they only wait for
a few handlers.

A call that waits ends when its client leaves. So calls of clients that leave at once cost next to nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from weakref import WeakValueDictionary

from apiserver.rpc.errors import overloaded

#: Reading calls of one user that are handled at once.
AT_ONCE = 16
#: Seconds that a call waits for its turn.
PATIENCE = 60


class ReadsAtOnce:
    """Counts the reading calls of each user. It belongs to one event loop."""

    def __init__(self) -> None:
        self._users: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(
        self, user: str, while_connected: Callable[[], AbstractAsyncContextManager[None]]
    ) -> AsyncIterator[None]:
        """Handle a call of `user` inside. 429 after PATIENCE; `while_connected` ends the wait if the client leaves."""
        turns = self._users.get(user)
        if turns is None:
            turns = self._users[user] = asyncio.Semaphore(AT_ONCE)
        if turns.locked():
            try:
                async with while_connected(), asyncio.timeout(PATIENCE):
                    await turns.acquire()
            except TimeoutError:
                raise overloaded("The server handles too many calls of this user at once") from None
        else:
            await turns.acquire()
        try:
            yield
        finally:
            turns.release()
