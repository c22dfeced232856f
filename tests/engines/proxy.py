"""A TCP proxy before an engine, which does to requests and answers what networks and overloaded nodes do.

It reads whole requests, of HTTP and of MongoDB's protocol. So it can cut a request in the middle, or have one done and
lose its answer. For example, with the fault `LOSE`:

    server   ── request ──▶  proxy  ── request ──▶  engine      the engine does it
    server   ◀── reset ────  proxy  ◀── half of the answer      and the server cannot know
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from typing import Any

_PIECE = 2**16
#: The least and the most seconds that a delayed request waits.
_DELAY = (0.0, 0.5)
#: Seconds between two pieces of an answer that trickles.
_DRIP = 0.02
_DROPS = 20


class Fault(Enum):
    """What is done to a request."""

    DELAY = "it waits"
    RESET = "its connection is reset before it is sent"
    CUT = "half of it is sent, then its connection is reset"
    LOSE = "it is done, and the connection is reset amid the answer"
    BUSY = "429, of HTTP only"
    AWAY = "503, of HTTP only"
    STALL = "nothing passes until the fault is over"
    TRICKLE = "the answer comes in small pieces"


#: Reads a whole request; IncompleteReadError at the end.
ReadRequest = Callable[[asyncio.StreamReader], Awaitable[bytes]]


async def http_request(reader: asyncio.StreamReader) -> bytes:
    """A request whose head says how long its body is."""
    head = await reader.readuntil(b"\r\n\r\n")
    fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line)
    assert b"transfer-encoding" not in fields, head
    return head + await reader.readexactly(int(fields.get(b"content-length", b"0")))


async def mongodb_request(reader: asyncio.StreamReader) -> bytes:
    """A message, whose first four bytes say how long it is."""
    length = await reader.readexactly(4)
    return length + await reader.readexactly(struct.unpack("<i", length)[0] - 4)


class Proxy:
    """A proxy that listens on a port of 127.0.0.1 while it is `running`. Any thread may set its fault."""

    def __init__(self, port: int, read_request: ReadRequest, seed: int, delay: tuple[float, float] = _DELAY) -> None:
        self.port = 0
        self.hits: Counter[Fault] = Counter()
        """How many requests had each fault."""
        self._engine = port
        self._read_request = read_request
        self._delay = delay
        self._dice = random.Random(seed)
        self._fault: Fault | None = None
        self._share = 1.0
        self._over = asyncio.Event()
        self._connections: set[asyncio.Task[Any]] = set()

    @contextmanager
    def running(self) -> Iterator[Proxy]:
        """In a thread of its own."""
        loop = asyncio.new_event_loop()
        server = loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        self._loop = loop
        try:
            yield self
        finally:
            asyncio.run_coroutine_threadsafe(self._close(server), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def set(self, fault: Fault | None, share: float = 1.0) -> None:
        """Begin a fault, for a share of the requests; None ends it."""

        def change() -> None:
            self._fault, self._share = fault, share
            self._over.set()
            self._over = asyncio.Event()

        self._loop.call_soon_threadsafe(change)

    async def _close(self, server: asyncio.Server) -> None:
        server.close()
        for one in self._connections:
            one.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._connect(reader, writer)
        finally:
            self._connections.discard(task)
            reset(writer)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_engine, to_engine = await asyncio.open_connection("127.0.0.1", self._engine)
        connection = _Connection(from_engine, writer)
        answers = asyncio.create_task(connection.pass_answers())
        try:
            while True:
                request = await self._read_request(reader)
                fault = self._fault if self._dice.random() < self._share else None
                if fault is not None:
                    self.hits[fault] += 1
                    if await self._is_refused(fault, request, connection, to_engine):
                        continue
                to_engine.write(request)
                await to_engine.drain()
        finally:
            answers.cancel()
            await asyncio.gather(answers, return_exceptions=True)
            reset(to_engine)

    async def _is_refused(
        self, fault: Fault, request: bytes, connection: _Connection, to_engine: asyncio.StreamWriter
    ) -> bool:
        """Apply the fault to a request. Returns True if the request has been answered and must not be passed on.

        ConnectionError: the connection is to be reset.
        """
        match fault:
            case Fault.DELAY:
                await asyncio.sleep(self._dice.uniform(*self._delay))
            case Fault.STALL:
                await self._over.wait()
            case Fault.CUT:
                to_engine.write(request[: len(request) // 2])
                await to_engine.drain()
                raise ConnectionResetError
            case Fault.RESET:
                raise ConnectionResetError
            case Fault.BUSY | Fault.AWAY:
                connection.writer.write(_refusal(429 if fault is Fault.BUSY else 503))
                await connection.writer.drain()
                return True
            case Fault.LOSE:
                connection.loses = True
                to_engine.write(request)
                await connection.lost.wait()
                raise ConnectionResetError
            case Fault.TRICKLE:
                connection.trickles = True
        return False


class _Connection:
    """Passes the answers of an engine back to a server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.loses = False
        self.lost = asyncio.Event()
        self.trickles = False

    async def pass_answers(self) -> None:
        try:
            while piece := await self.reader.read(_PIECE):
                if self.loses:
                    self.writer.write(piece[: len(piece) // 2])
                    return
                drop = max(1, len(piece) // _DROPS) if self.trickles else len(piece)
                self.trickles = False
                for start in range(0, len(piece), drop):
                    self.writer.write(piece[start : start + drop])
                    await self.writer.drain()
                    if drop < len(piece):
                        await asyncio.sleep(_DRIP)
            self.writer.close()
        finally:
            self.lost.set()


def _refusal(status: int) -> bytes:
    body = b'{"error":{"type":"es_rejected_execution_exception","reason":"the queue is full"},"status":%d}' % status
    head = (
        b"HTTP/1.1 %d X\r\nX-Elastic-Product: Elasticsearch\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % (status, len(body))
    )
    return head + body


def reset(writer: asyncio.StreamWriter) -> None:
    """Reset a connection, so that the other end sees an error. One that was closed properly stays closed."""
    if not writer.transport.is_closing():
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
