"""Sends large answers in pieces, and only a few pieces of all answers in one turn of the event loop.

It takes milliseconds to hand a megabyte to the kernel. If a thousand clients asked for such answers at once, all other
clients would wait for seconds.

Sending ends when the client has taken the answer, but for the last bytes. So an answer whose client is slow counts as
being in memory for as long as it is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from weakref import WeakKeyDictionary

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

#: Bytes of an answer that is sent as it is, and of each piece of one that is sent while it is made.
PIECE = 128 * 2**10
#: Bytes of a piece of a complete answer, and how many of them are sent in one turn of the event loop.
_LARGE_PIECE, _AT_ONCE = 512 * 2**10, 2


class _SendingTurns:
    """Lets senders send a few pieces in each turn of the event loop, in the order they came."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._left = _AT_ONCE
        self._is_counting = False

    async def turn(self) -> None:
        """Return when the caller may send a piece: at once, unless others have sent enough in this turn."""
        loop = asyncio.get_running_loop()
        if not self._is_counting:
            self._is_counting = True
            loop.call_soon(self._next)
        if self._left and not self._waiting:
            self._left -= 1
            return
        future = loop.create_future()
        self._waiting.append(future)
        await future

    def _next(self) -> None:
        """Begin another turn, until nobody sends any more."""
        self._left = _AT_ONCE
        while self._waiting and self._left:
            future = self._waiting.popleft()
            if not future.done():  # a sender that was cancelled meanwhile takes no turn
                future.set_result(None)
                self._left -= 1
        self._is_counting = self._left < _AT_ONCE
        if self._is_counting:
            asyncio.get_running_loop().call_soon(self._next)


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, _SendingTurns] = WeakKeyDictionary()


async def send_body(send: Send, content: bytes | list[bytes], *, more_body: bool = False) -> None:
    """Send the body of an answer whose head is sent already; with `more_body`, the caller ends the body later."""
    if isinstance(content, bytes) and len(content) <= PIECE:
        return await send({"type": "http.response.body", "body": content, "more_body": more_body})
    turns = _turns.setdefault(asyncio.get_running_loop(), _SendingTurns())
    for part in [content] if isinstance(content, bytes) else content:
        for piece in pieces_of(part, _LARGE_PIECE):
            await turns.turn()
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    if not more_body:
        await asyncio.sleep(0)  # pieces are written at the end of a turn, and then it is known whether they are taken
        await send({"type": "http.response.body", "body": b""})


def pieces_of(content: bytes, size: int = PIECE) -> Iterator[memoryview]:
    """The content cut into pieces of `size` bytes, without a copy."""
    return (memoryview(content)[start : start + size] for start in range(0, len(content), size))


class LargeResponse(Response):
    """A response of Starlette's whose body is sent in pieces."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send_body(send, bytes(self.body))
