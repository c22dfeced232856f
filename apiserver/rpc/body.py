"""Reads a request body within limits, so that memory stays bounded whatever a client sends.

Large bodies share a limited room (`in_flight.py`). A body takes room for the bytes that have come and for those that
are inflated from them, never for bytes that it only announces. A body that comes too slowly is refused, because others
wait for its room.

Inflating, parsing and checking a large body takes long. A few threads do it, in steps. If the client has left, the next
step is not taken, and the room is free at once.

Callers without valid credentials ("strangers") may send small bodies only. Of a refused body, the server reads some
more, so that its client sees why it was refused; for strangers it does so only for a short time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, TypeVar

from starlette.types import Receive

from apiserver.common.answers import LARGEST
from apiserver.rpc.disconnects import ClientDisconnected, while_connected
from apiserver.rpc.encodings import Inflating, inflate
from apiserver.rpc.errors import ApiError, request_timeout, too_large
from apiserver.rpc.in_flight import InFlight, Share

#: Bodies of up to this size, as sent and as inflated, never wait for others. Of larger ones, the bytes beyond it count.
SMALL = 64 * 2**10
#: Chunks are joined once there are this many: each takes memory beside its bytes, however few these are.
_CHUNKS = 256

#: More than one thread, so that a short step passes a long one; only a few, because Python runs one at a time anyway.
_threads = ThreadPoolExecutor(4, "large-bodies")

T = TypeVar("T")

#: What the scope's extensions may hold: a function that gives the rest of a body if all of it has come, else None.
#: Then nothing has to be waited for, and no timer is needed.
RestOfBody = Callable[[], bytes | None]
REST_OF_BODY = "rest_of_body"


@dataclass(slots=True)
class Drain:
    """How much of a refused body is read and thrown away: up to `size` bytes, for up to `seconds`.

    If the connection closed while the client still sends, the client would never see its answer. Only `at_once` bodies
    are drained at a time: draining those of thousands of clients would keep all others waiting.
    """

    size: int
    seconds: float
    at_once: int = 1000
    under_way: int = 0

    @contextmanager
    def begun(self) -> Iterator[int]:
        """Count a body that is drained inside the block; gives the bytes to read of it, 0 if too many are drained."""
        self.under_way += 1
        try:
            yield self.size if self.under_way <= self.at_once else 0
        finally:
            self.under_way -= 1


#: How much is drained of known callers, of strangers (of all servers of a process together), and of those who stopped
#: sending.
KNOWN_DRAIN, STRANGERS_DRAIN, _NO_DRAIN = Drain(64 * 2**20, 10), Drain(16 * 2**20, 2, at_once=32), Drain(0, 0)


def _declared_length(headers: Mapping[str, str]) -> int | None:
    """The number in Content-Length; None if there is none."""
    length = headers.get("content-length", "")
    return int(length[:20]) if length.isdecimal() else None


class Allowance(NamedTuple):
    """What a caller may send: most bytes as sent and as inflated, and how much is drained when it is refused."""

    sent: int
    inflated: int
    drain: Drain


@dataclass(frozen=True)
class Limits:
    """Limits of requests, in bytes and seconds."""

    body: int = 16 * 2**20
    """Limit on a body, as sent and as inflated."""
    strangers_body: int = 16 * 2**10
    """Limit on a stranger's body, as sent."""
    strangers_inflated: int = 64 * 2**10
    """Limit on a stranger's body, as inflated."""
    in_flight: int = 64 * 2**20
    """Limit on the bytes of all bodies together. One body may exceed it; others wait and then get 429."""
    answers: int = LARGEST
    """Limit on the bytes that are read for all answers together. One answer may always have LARGEST."""
    stall_seconds: float = 60
    """How long a client may send nothing of its body (408). Being slower than `least_rate` uses up the same time."""
    least_rate: int = 16 * 2**10
    """Bytes a second that a client has to send, on average."""

    known_drain: Drain = field(default_factory=lambda: KNOWN_DRAIN)
    """How much is drained of a refused request of a known caller."""
    strangers_drain: Drain = field(default_factory=lambda: STRANGERS_DRAIN)
    """The same of strangers."""

    @cached_property
    def of_strangers(self) -> Allowance:
        """What a caller without valid credentials may send."""
        sent, inflated = min(self.strangers_body, self.body), min(self.strangers_inflated, self.body)
        return Allowance(sent, inflated, self.strangers_drain)

    @cached_property
    def of_the_known(self) -> Allowance:
        """What a known caller may send."""
        return Allowance(self.body, self.body, self.known_drain)


class Body:
    """One request's body. `read` it, or give `each` piece to something, at most once; then `drain` what is left.

    The limits for strangers apply until `known` is called. With `in_flight`, `read` waits for room for a large body:
    `release` the body when it is answered.
    """

    def __init__(
        self,
        receive: Receive,
        headers: Mapping[str, str],
        limits: Limits,
        in_flight: InFlight | None = None,
        rest: RestOfBody | None = None,
    ) -> None:
        self._receive = receive
        self._rest = rest
        self._headers = headers
        self._limits = limits
        self._allowed = limits.of_strangers
        self._patience = limits.stall_seconds
        self._in_flight = in_flight
        self._share: Share | None = None  # a small body has none
        self._complete = False

    def known(self) -> None:
        """The caller is known: apply the limits for known callers from now on."""
        self._allowed = self._limits.of_the_known

    async def read(self) -> bytes:
        """The decoded body.

        413 beyond the limit (before anything is read, if Content-Length says so); 408 if the body comes too slowly; 415
        for an unknown coding, 400 for a corrupt body; 429 if the server holds too many bodies for too long.
        ClientDisconnected if the client leaves before the end of the body.
        """
        declared = _declared_length(self._headers)
        if declared is not None and declared > self._allowed.sent:
            raise too_large(self._allowed.sent)
        sent = await self._read_wire()
        encoding = self._headers.get("content-encoding")
        return await self._inflate(sent, encoding) if encoding and sent else sent

    async def each(self, take: Callable[[bytes], Awaitable[None]]) -> None:
        """Give `take` each piece as it was sent, however many there are; 408 if the body comes too slowly.

        No piece is kept while the next one is awaited, because there may be thousands of uploads. ClientDisconnected
        if the client leaves before the end of the body.
        """
        while not self._complete:
            await take(await self._next())

    async def _read_wire(self) -> bytes:
        blocks: list[bytes] = []
        chunks: list[bytes] = []
        size = 0
        while not self._complete:
            chunk = await self._next()
            size += len(chunk)
            if size > self._allowed.sent:
                raise too_large(self._allowed.sent)
            if size > SMALL:
                await self._hold(size)
            chunks.append(chunk)
            if len(chunks) == _CHUNKS:
                blocks.append(b"".join(chunks))
                chunks.clear()
        blocks += chunks
        return blocks[0] if len(blocks) == 1 else b"".join(blocks)

    async def _inflate(self, sent: bytes, encoding: str) -> bytes:
        if len(sent) <= SMALL:
            try:
                return inflate(sent, encoding, min(SMALL, self._allowed.inflated))
            except ApiError as error:
                if error.code != 413 or self._allowed.inflated <= SMALL:
                    raise
        inflating = Inflating(sent, encoding, self._allowed.inflated)
        while not inflating.done:
            await self.work(inflating.step, len(sent) + inflating.size + inflating.room)
        await self._hold(inflating.size)
        return inflating.content()

    async def work(self, function: Callable[[], T], memory: int = 0) -> T:
        """Run `function` in a thread and return its result, as soon as there is room for `memory` bytes for this body.

        For work of more than a few milliseconds on a complete body. 429 if there is no room for too long.
        ClientDisconnected if the client leaves; the function still runs to its end then, so it should not take long.
        """
        async with self.while_connected():
            if memory:
                await self._hold(memory)
            return await asyncio.get_running_loop().run_in_executor(_threads, function)

    def while_connected(self) -> AbstractAsyncContextManager[None]:
        """Ends a block with ClientDisconnected if the client leaves. For a complete body."""
        return while_connected(self._receive)

    async def _next(self) -> bytes:
        rest = self._rest() if self._rest else None
        if rest is not None:
            self._complete = True
            return rest
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(self._patience):
                message = await self._receive()
        except TimeoutError:
            self._allowed = self._allowed._replace(drain=_NO_DRAIN)
            raise request_timeout(self._limits.stall_seconds) from None
        if message["type"] == "http.disconnect":
            self._complete = True
            raise ClientDisconnected
        self._complete = not message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        late = clock() - began - len(chunk) / self._limits.least_rate
        self._patience = min(self._patience - late, self._limits.stall_seconds)
        return chunk

    async def _hold(self, size: int) -> None:
        """Take room for `size` bytes of this body in all."""
        if self._in_flight is None:
            return
        if self._share is None:
            self._share = self._in_flight.share()
        await self._in_flight.hold(self._share, max(size - SMALL, 0))

    @property
    def complete(self) -> bool:
        """Whether the whole body has come."""
        return self._complete

    @property
    def may_outlast_drain(self) -> bool:
        """Whether more of the body may come than `drain` reads."""
        if self._complete:
            return False
        length = _declared_length(self._headers)
        return "transfer-encoding" in self._headers if length is None else length > self._allowed.drain.size

    async def drain(self) -> None:
        """Free the body's room, and throw away what is still coming, up to a limit of bytes and time."""
        self.release()
        drain = self._allowed.drain
        with drain.begun() as left, suppress(TimeoutError, ClientDisconnected, ApiError):
            async with asyncio.timeout(drain.seconds):
                while not self._complete and left > 0:
                    left -= len(await self._next())

    def release(self) -> None:
        """Free the body's room."""
        if self._in_flight is not None and self._share is not None:
            self._in_flight.release(self._share)
