"""Connections to one node, in HTTP/1.1. Each has one request at a time, and is kept for the next one.

A server asks nodes for little, and often. The HTTP client of the client's library takes most of the CPU of such a
request, as it can do much that is not needed here. This one knows the answers that nodes give: with a length, or in
chunks.

Large answers are read one at a time, so that memory has only one of them; the others wait in sockets and at nodes. An
answer that is larger than it may be is not read to its end.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import NamedTuple, cast

import httptools

#: Connections that are open at once.
_MOST = 32
#: Seconds for which a connection may have been idle before it is used again: those between may forget it.
_IDLE = 15.0
#: Bytes of a request that are written at once.
_PIECE = 2**18
#: An answer with more bytes waits for its turn.
_IN_TURNS = 2**18


class Answer(NamedTuple):
    """An answer of a node. `body` is None if it is larger than it may be."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes | None


class Connections:
    """The connections to a node. OSError, ssl.SSLError: it does not answer."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._room = asyncio.Semaphore(_MOST)
        self._turns = asyncio.Lock()
        self._idle: list[tuple[_Connection, float]] = []
        """In the order in which they became idle, and since when (monotonic)."""

    async def ask(self, head: bytes, body: bytes, *, largest: int, is_head: bool) -> Answer:
        """The answer to a request, which has at most `largest` bytes. `is_head`: it has a head only."""
        async with self._room:
            connection = self._kept() or await self._connected()
            try:
                answer = await connection.ask(head, body, self._turns, largest, is_head=is_head)
            except BaseException:
                connection.abort()
                raise
            if connection.may_be_kept:
                self._idle.append((connection, asyncio.get_running_loop().time()))
            else:
                connection.abort()
            return answer

    def close(self) -> None:
        """Close the connections that are idle."""
        while self._idle:
            self._idle.pop()[0].abort()

    def _kept(self) -> _Connection | None:
        """A connection that was used just now, if there is one."""
        while self._idle:
            connection, since = self._idle.pop()
            if connection.may_be_kept and asyncio.get_running_loop().time() - since < _IDLE:
                return connection
            connection.abort()
        return None

    async def _connected(self) -> _Connection:
        name = self._host if self._tls is not None else None
        _, connection = await asyncio.get_running_loop().create_connection(
            _Connection, self._host, self._port, ssl=self._tls, server_hostname=name
        )
        return connection


class _Connection(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport
        self._parser = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[None] | None = None
        self._error: OSError | None = None
        self._is_full = False
        """The transport takes no more of the request for now."""
        self._is_paused = False
        """Nothing more of the answer is read for now."""
        self._is_asked = False
        self._is_head = False
        self._status = 0
        self._closes = False
        self._headers: list[tuple[str, str]] = []
        self._pieces: list[bytes] = []
        self._size = 0
        self._most = 0
        """Bytes of the answer that may be read now."""
        self._is_complete = False

    @property
    def may_be_kept(self) -> bool:
        """Whether another request may be sent: nothing is left of the one before."""
        return self._error is None and not self._is_asked and not self._transport.is_closing()

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()

    async def ask(self, head: bytes, body: bytes, turns: asyncio.Lock, largest: int, *, is_head: bool) -> Answer:
        """As `Connections.ask`."""
        self._headers, self._pieces, self._size, self._most = [], [], 0, min(_IN_TURNS, largest)
        self._is_asked, self._is_head, self._is_complete = True, is_head, False
        is_whole = await self._write(head, body)
        await self._until(lambda: self._is_complete or self._size > self._most)
        if not self._is_complete and self._most < largest:
            async with turns:
                self._most = largest
                self._read_on()
                await self._until(lambda: self._is_complete or self._size > largest)
        if self._size > largest:
            return Answer(self._status, self._headers, None)
        self._read_on()
        self._is_asked = is_head or self._closes or not is_whole
        pieces, self._pieces = self._pieces, []  # an idle connection keeps none of them
        return Answer(self._status, self._headers, b"".join(pieces))

    def _read_on(self) -> None:
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()

    async def _write(self, head: bytes, body: bytes) -> bool:
        """Send a request. Returns whether it was sent to its end: a node may refuse it before it has all of it."""
        if len(body) <= _PIECE:
            self._transport.write(head + body)
            return True
        self._transport.write(head)
        for start in range(0, len(body), _PIECE):
            await self._until(lambda: not self._is_full or self._is_complete)
            if self._is_complete:
                return False
            self._transport.write(body[start : start + _PIECE])
        return True

    async def _until(self, condition: Callable[[], bool]) -> None:
        """Wait for it. OSError: the connection fails before."""
        while not condition():
            if self._error is not None:
                raise self._error
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # --- what the transport tells ------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(OSError(f"the node's answer is no HTTP: {error}"))

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(error if isinstance(error, OSError) else ConnectionResetError("the node closed the connection"))

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._wake()

    def _fail(self, error: OSError) -> None:
        if self._error is None:
            self._error = error
        self._transport.abort()
        self._wake()

    # --- what the parser tells ---------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if not self._is_asked or self._is_complete:
            raise OSError("the node answers what nobody asked")  # the parser stops, and goes not into the answer before

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self._status, self._closes = self._parser.get_status_code(), not self._parser.should_keep_alive()
        if self._is_head:  # the parser waits for the body that was told of
            self._is_complete = True
            self._wake()

    def on_body(self, piece: bytes) -> None:
        self._size += len(piece)
        self._pieces.append(piece)
        if self._size > self._most and not self._is_paused:
            self._is_paused = True
            self._transport.pause_reading()
            self._wake()

    def on_message_complete(self) -> None:
        if self._status < 200:  # the answer itself is yet to come
            self._headers = []
            return
        self._is_complete = True
        self._wake()
