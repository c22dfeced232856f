"""The request body off the wire, within limits: memory stays bounded whatever a client sends."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import anyio.to_thread
from starlette.types import Receive

from apiserver.rpc.encodings import inflate
from apiserver.rpc.errors import ApiError, request_timeout, too_large
from apiserver.rpc.in_flight import InFlight

#: Bodies larger than this, compressed, are inflated in a thread.
_LARGE = 8 * 2**10
#: Bodies that say that they are no larger need not wait for others, and are not counted.
_SMALL = 64 * 2**10
#: How much of a refused body is read and thrown away, and for how long: a client that is still sending when the
#: connection closes would never see its answer.
_DRAINED_BYTES = 64 * 2**20
_DRAIN_SECONDS = 10


class ClientDisconnected(Exception):
    """The client went away before its request was whole; nobody is there to answer."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What requests may ask of the server: memory in bytes, patience in seconds."""

    body: int = 16 * 2**20
    """The largest body, as sent and as inflated."""
    in_flight: int = 64 * 2**20
    """All bodies together that are being read or handled; beyond it they wait, then are told to come back (429)."""
    stall_seconds: float = 60
    """How long a client may send nothing while its body is not whole (408)."""


class Body:
    """One request's body. `read` it at most once; then `drain` what is left, and `release` it when answered."""

    def __init__(self, receive: Receive, headers: Mapping[str, str], limits: Limits, in_flight: InFlight) -> None:
        self._receive = receive
        self._headers = headers
        self._limit = limits.body
        self._stall_seconds = limits.stall_seconds
        self._in_flight = in_flight
        self._taken = 0
        self._complete = False
        self._left = _DRAINED_BYTES

    async def read(self) -> bytes:
        """The decoded body.

        413 beyond the limit, when Content-Length says so before anything is read; 408 when it stalls; 415 and 400 for
        codings that are unknown or corrupt; 429 when the server holds too many bodies for too long. ClientDisconnected
        when the client leaves before its end.
        """
        length = self._headers.get("content-length", "")
        declared = int(length[:20]) if length.isdecimal() else None
        if declared is not None and declared > self._limit:
            raise too_large(self._limit)
        small = declared is not None and declared <= _SMALL
        if declared is not None and not small:
            await self._in_flight.wait_for(declared)
            self._taken = declared
        sent = await self._read_wire(counted=not small)
        encoding = self._headers.get("content-encoding")
        if not encoding or not sent:
            return sent
        if len(sent) < _LARGE:
            decoded = inflate(sent, encoding, self._limit)
        else:
            decoded = await anyio.to_thread.run_sync(inflate, sent, encoding, self._limit)
        self._count(len(sent) + len(decoded))
        return decoded

    async def _read_wire(self, *, counted: bool) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while not self._complete:
            chunk = await self._next()
            size += len(chunk)
            if size > self._limit:
                raise too_large(self._limit)
            if counted:
                self._count(size)
            chunks.append(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def _next(self) -> bytes:
        try:
            async with asyncio.timeout(self._stall_seconds):
                message = await self._receive()
        except TimeoutError:
            self._left = 0
            raise request_timeout(self._stall_seconds) from None
        if message["type"] == "http.disconnect":
            self._complete = True
            raise ClientDisconnected
        self._complete = not message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        return chunk

    def _count(self, size: int) -> None:
        """Of this body there are `size` bytes now."""
        more = size - self._taken
        if more > 0:
            self._in_flight.take(more)
            self._taken = size

    @property
    def complete(self) -> bool:
        """Whether all of it has come."""
        return self._complete

    async def drain(self) -> None:
        """Throw away what is still coming, up to a bound of bytes and time."""
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                while not self._complete and self._left > 0:
                    self._left -= len(await self._next())
        except (TimeoutError, ClientDisconnected, ApiError):
            return

    def release(self) -> None:
        """Its memory is free again."""
        self._in_flight.give(self._taken)
        self._taken = 0
