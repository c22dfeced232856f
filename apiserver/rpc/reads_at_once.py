"""Limits how many reading calls of one user are begun at once. Further ones wait, first come, first served.

Between its reads, a handler works for some milliseconds on the event loop. If a thousand calls were begun at once, all
could go on in the same turn of the loop, and all others would wait for seconds. With this limit they only wait for a
few handlers.

A call that waits ends when its client leaves. So calls of clients that leave at once cost next to nothing.

Handlers that take long mostly wait for a store, so others need not wait for them: 16 further calls may begin every 0.2
seconds. For example, 40 calls come at once, and each takes a minute: 16 are begun at once, 16 after 0.2 seconds, and 8
after 0.4 seconds.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

#: Reading calls of one user that are begun at once.
AT_ONCE = 16
#: Seconds that as many calls wait at most for those before them.
LONGEST = 0.2

WhileConnected = Callable[[], AbstractAsyncContextManager[None]]
"""Makes a block that ends with ClientDisconnected when the client leaves."""


class _Turns:
    """The turns of one user's calls that are free, and the calls that wait for one."""

    __slots__ = ("free", "longest", "waiting")

    def __init__(self, longest: float) -> None:
        self.free = AT_ONCE
        self.longest = longest
        self.waiting: deque[asyncio.Future[None]] = deque()

    def release(self) -> None:
        """Give a turn to the call that waits longest."""
        while self.waiting:
            first = self.waiting.popleft()
            if not first.done():  # otherwise its client has left, or it has waited long enough
                return first.set_result(None)
        self.free += 1


class Turn:
    """A block in which a call is handled. Not a generator, because it is entered for each reading call."""

    __slots__ = ("_is_taken", "_turns", "_while_connected")

    def __init__(self, turns: _Turns, while_connected: WhileConnected) -> None:
        self._turns = turns
        self._while_connected = while_connected
        self._is_taken = False

    async def __aenter__(self) -> None:
        if self._turns.free:
            self._turns.free -= 1
            self._is_taken = True
        else:
            self._is_taken = await _wait(self._turns, self._while_connected)

    async def __aexit__(self, *_: object) -> None:
        if self._is_taken:
            self._turns.release()


class ReadsAtOnce:
    """Counts the reading calls of each user. It belongs to one event loop."""

    def __init__(self, longest: float = LONGEST) -> None:
        """`longest`: seconds that as many calls as may begin at once wait at most for those before them."""
        self._longest = longest
        self._users: dict[str, _Turns] = {}

    def turn(self, user: str, while_connected: WhileConnected) -> Turn:
        """Handle a call of `user` inside, when it is its turn. `while_connected` ends the wait if the client leaves."""
        turns = self._users.get(user)
        if turns is None:
            turns = self._users[user] = _Turns(self._longest)
        return Turn(turns, while_connected)


async def _wait(turns: _Turns, while_connected: WhileConnected) -> bool:
    """Take a turn as soon as there is one; False if that would take too long."""
    turn = asyncio.get_running_loop().create_future()
    turns.waiting.append(turn)
    try:
        async with while_connected(), asyncio.timeout(turns.longest * -(-len(turns.waiting) // AT_ONCE)):
            await turn
            return True
    except BaseException as error:
        if turn in turns.waiting:
            turns.waiting.remove(turn)
        elif not turn.cancelled():  # the turn came at the same time
            turns.release()
        if isinstance(error, TimeoutError):
            return False
        raise
