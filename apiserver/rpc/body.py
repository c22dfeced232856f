"""The request body off the wire, within limits: memory stays bounded whatever a client sends.

Room for a large body (`in_flight.py`) is taken as it comes, whether it is sent with its length, in chunks or
compressed, and as it is inflated. A body that hardly comes on is ended, because what has come of it takes room that
others wait for.

What takes long (to inflate, parse and check a large body) is done in a few threads, in steps. When the client is gone,
the next step is not taken, and the room is free at once.

Strangers, who said nothing of who they are or something wrong, send small bodies only, and are not waited for long once
they are refused: a client whose key has ended still sees why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

from starlette.types import Receive

from apiserver.answers import LARGEST
from apiserver.rpc.encodings import Inflating, inflate
from apiserver.rpc.errors import ApiError, request_timeout, too_large
from apiserver.rpc.in_flight import InFlight, Share
from apiserver.rpc.presence import ClientDisconnected, while_there

#: Bodies that are no larger, as sent and as inflated, never wait for others. Of larger ones the rest is counted.
SMALL = 64 * 2**10
#: Chunks are joined by so many: each takes some memory beside its bytes, however few these are.
_CHUNKS = 256
#: Bytes a second that a client has to send on average, or its patience (`Limits.stall_seconds`) is used up.
_LEAST_RATE = 16 * 2**10


#: Few, as the lock of Python lets one run at a time anyway; more than one, so that a short step passes a long one.
_threads = ThreadPoolExecutor(4, "large-bodies")

T = TypeVar("T")

#: What a connection may say in the scope's extensions: the rest of a body when all of it has come, else None. A body
#: that need not be waited for needs no timer.
RestOfBody = Callable[[], bytes | None]
REST_OF_BODY = "rest_of_body"


@dataclass(slots=True)
class Drain:
    """How much of a refused body is read and thrown away, in bytes, and for how many seconds.

    A client that is still sending when the connection closes would never see its answer. Only so many bodies are
    drained `at_once`: to read what nobody needs from thousands of clients would keep all others waiting.
    """

    size: int
    seconds: float
    at_once: int = 1000
    under_way: int = 0

    @contextmanager
    def begun(self) -> Iterator[int]:
        """Inside, a body is drained: of so many bytes, none while enough others are."""
        self.under_way += 1
        try:
            yield self.size if self.under_way <= self.at_once else 0
        finally:
            self.under_way -= 1

    @staticmethod
    def of(*, known: bool) -> Drain:
        """For callers that are known, and for strangers."""
        return _KNOWN_DRAIN if known else _STRANGERS_DRAIN


_KNOWN_DRAIN, _STRANGERS_DRAIN, _NO_DRAIN = Drain(64 * 2**20, 10), Drain(16 * 2**20, 2, at_once=32), Drain(0, 0)


def may_be_long(headers: Mapping[str, str], drain: Drain) -> bool:
    """Whether a request's body may be longer than what is drained of it, by the request's headers."""
    length = declared_length(headers)
    return "transfer-encoding" in headers if length is None else length > drain.size


def declared_length(headers: Mapping[str, str]) -> int | None:
    """What Content-Length says; None when it says nothing."""
    length = headers.get("content-length", "")
    return int(length[:20]) if length.isdecimal() else None


class Allowance(NamedTuple):
    """What a caller may send: bytes as sent, and as inflated; and what of it is read when it is refused."""

    sent: int
    inflated: int
    drain: Drain


@dataclass(frozen=True)
class Limits:
    """What requests may ask of the server: memory in bytes, patience in seconds."""

    body: int = 16 * 2**20
    """The largest body, as sent and as inflated."""
    strangers_body: int = 16 * 2**10
    """The largest body of a stranger, as sent."""
    strangers_inflated: int = 64 * 2**10
    """The largest body of a stranger, as inflated."""
    in_flight: int = 64 * 2**20
    """All bodies together that are being read or handled, but for one that may go beyond; then they wait, then 429."""
    answers: int = LARGEST
    """All answers together, in the bytes that are read for them, but for one that may have LARGEST alone."""
    stall_seconds: float = 60
    """How long a client may send nothing, or in all be late, while its body is not whole (408)."""

    @cached_property
    def of_strangers(self) -> Allowance:
        """For callers who are not known."""
        sent, inflated = min(self.strangers_body, self.body), min(self.strangers_inflated, self.body)
        return Allowance(sent, inflated, Drain.of(known=False))

    @cached_property
    def of_the_known(self) -> Allowance:
        """For callers who are."""
        return Allowance(self.body, self.body, Drain.of(known=True))


class Body:
    """One request's body. `read` it at most once; then `drain` what is left, and `release` it when answered.

    It is taken for a stranger's until `known` says that its caller is known.
    """

    def __init__(
        self,
        receive: Receive,
        headers: Mapping[str, str],
        limits: Limits,
        in_flight: InFlight,
        rest: RestOfBody | None = None,
    ) -> None:
        self._receive = receive
        self._rest = rest
        self._headers = headers
        self._limits = limits
        self._allowed = limits.of_strangers
        self._patience = limits.stall_seconds
        self._in_flight = in_flight
        self._share: Share | None = None  # small bodies need none
        self._complete = False

    def known(self) -> None:
        """From now on it may be as large as that of a caller who is known."""
        self._allowed = self._limits.of_the_known

    async def read(self) -> bytes:
        """The decoded body.

        413 beyond the limit, when Content-Length says so before anything is read; 408 when it stalls or trickles; 415
        and 400 for codings that are unknown or corrupt; 429 when the server holds too many bodies for too long.
        ClientDisconnected when the client leaves before its end.
        """
        declared = declared_length(self._headers)
        if declared is not None and declared > self._allowed.sent:
            raise too_large(self._allowed.sent)
        sent = await self._read_wire()
        encoding = self._headers.get("content-encoding")
        return await self._inflate(sent, encoding) if encoding and sent else sent

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
        """What `function` returns, done in a thread, as soon as there is room for `memory` bytes in all.

        For what takes longer than a few milliseconds, once the body is whole. 429 when there is no room for long,
        ClientDisconnected when the client is gone. What has begun then goes on in its thread, so it must not be long.
        """
        async with while_there(self._receive):
            if memory:
                await self._hold(memory)
            return await asyncio.get_running_loop().run_in_executor(_threads, function)

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
        late = clock() - began - len(chunk) / _LEAST_RATE
        self._patience = min(self._patience - late, self._limits.stall_seconds)
        return chunk

    async def _hold(self, size: int) -> None:
        """There are `size` bytes of this body now."""
        if self._share is None:
            self._share = self._in_flight.share()
        await self._in_flight.hold(self._share, max(size - SMALL, 0))

    @property
    def complete(self) -> bool:
        """Whether all of it has come."""
        return self._complete

    @property
    def may_outlast_drain(self) -> bool:
        """Whether more of it may come than `drain` reads."""
        return not self._complete and may_be_long(self._headers, self._allowed.drain)

    async def drain(self) -> None:
        """Throw away what has come and what is still coming, up to a bound of bytes and time."""
        self.release()
        drain = self._allowed.drain
        with drain.begun() as left, suppress(TimeoutError, ClientDisconnected, ApiError):
            async with asyncio.timeout(drain.seconds):
                while not self._complete and left > 0:
                    left -= len(await self._next())

    def release(self) -> None:
        """Its memory is free again."""
        if self._share is not None:
            self._in_flight.release(self._share)
