"""Sends large answers in pieces, and only a few pieces of all answers in one turn of the event loop.

It takes milliseconds to hand a megabyte to the kernel. If a thousand clients asked for such answers at once, all other
clients would wait for seconds. If a client does not take its answer, only one piece waits in the connection's buffer.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from weakref import WeakKeyDictionary

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

#: Bytes of a piece.
PIECE = 128 * 2**10
#: Pieces that are sent in one turn of the event loop.
_AT_ONCE = 8


class _SendingTurns:
    """Lets a few senders go on in each turn of the event loop, in the order they came."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def turn(self) -> None:
        """Return when it is the caller's turn."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._next)
        self._waiting.append(future)
        await future

    def _next(self) -> None:
        left = _AT_ONCE
        while self._waiting and left:
            future = self._waiting.popleft()
            if not future.done():  # a sender that was cancelled meanwhile takes no turn
                future.set_result(None)
                left -= 1
        if self._waiting:
            asyncio.get_running_loop().call_soon(self._next)


_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, _SendingTurns] = WeakKeyDictionary()


async def send_body(send: Send, content: bytes | list[bytes], *, more_body: bool = False) -> None:
    """Send the body of an answer whose head is sent already; with `more_body`, the caller ends the body later."""
    if isinstance(content, bytes) and len(content) <= PIECE:
        return await send({"type": "http.response.body", "body": content, "more_body": more_body})
    turns = _turns.setdefault(asyncio.get_running_loop(), _SendingTurns())
    parts = [content] if isinstance(content, bytes) else content
    pieces = [piece for part in parts for piece in pieces_of(part)]
    for number, piece in enumerate(pieces, 1):
        await turns.turn()
        is_last = number == len(pieces)
        await send({"type": "http.response.body", "body": piece, "more_body": more_body or not is_last})


def pieces_of(content: bytes) -> Iterator[memoryview]:
    """The content cut into pieces, without a copy."""
    return (memoryview(content)[start : start + PIECE] for start in range(0, len(content), PIECE))


class LargeResponse(Response):
    """A response of Starlette's whose body is sent in pieces."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send_body(send, bytes(self.body))
