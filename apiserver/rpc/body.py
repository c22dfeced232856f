"""The request body off the wire, within limits: memory stays bounded whatever a client sends.

Room for a large body (`in_flight.py`) is taken as it comes, whether it is sent with its length, in chunks or
compressed. How much a compressed one will be is not known before it is inflated, so there has to be room for the
largest meanwhile. A body that hardly comes on is ended, because what has come of it takes room that others wait for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

import anyio.to_thread
from starlette.types import Receive

from apiserver.rpc.encodings import inflate
from apiserver.rpc.errors import ApiError, request_timeout, too_large
from apiserver.rpc.in_flight import InFlight

#: Bodies that are no larger, as sent and as inflated, never wait for others. Of larger ones the rest is counted.
_SMALL = 64 * 2**10
#: Bytes a second that a client has to send on average, or its patience (`Limits.stall_seconds`) is used up.
_LEAST_RATE = 16 * 2**10
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
    """All bodies together that are being read or handled, but for one that may go beyond; then they wait, then 429."""
    stall_seconds: float = 60
    """How long a client may send nothing, or in all be late, while its body is not whole (408)."""


class Body:
    """One request's body. `read` it at most once; then `drain` what is left, and `release` it when answered."""

    def __init__(self, receive: Receive, headers: Mapping[str, str], limits: Limits, in_flight: InFlight) -> None:
        self._receive = receive
        self._headers = headers
        self._limit = limits.body
        self._stall_seconds = self._patience = limits.stall_seconds
        self._in_flight = in_flight
        self._share = in_flight.share()
        self._complete = False
        self._left = _DRAINED_BYTES

    async def read(self) -> bytes:
        """The decoded body.

        413 beyond the limit, when Content-Length says so before anything is read; 408 when it stalls or trickles; 415
        and 400 for codings that are unknown or corrupt; 429 when the server holds too many bodies for too long.
        ClientDisconnected when the client leaves before its end.
        """
        length = self._headers.get("content-length", "")
        declared = int(length[:20]) if length.isdecimal() else None
        if declared is not None and declared > self._limit:
            raise too_large(self._limit)
        sent = await self._read_wire()
        encoding = self._headers.get("content-encoding")
        return await self._inflate(sent, encoding) if encoding and sent else sent

    async def _read_wire(self) -> bytes:
        chunks: list[bytes] = []
        size = 0
        while not self._complete:
            chunk = await self._next()
            size += len(chunk)
            if size > self._limit:
                raise too_large(self._limit)
            await self._hold(size)
            chunks.append(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def _inflate(self, sent: bytes, encoding: str) -> bytes:
        if len(sent) <= _SMALL:
            try:
                return inflate(sent, encoding, min(_SMALL, self._limit))
            except ApiError as error:
                if error.code != 413:
                    raise
        await self._hold(len(sent) + self._limit)
        decoded = await anyio.to_thread.run_sync(inflate, sent, encoding, self._limit)
        await self._hold(len(decoded))
        return decoded

    async def _next(self) -> bytes:
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with asyncio.timeout(self._patience):
                message = await self._receive()
        except TimeoutError:
            self._left = 0
            raise request_timeout(self._stall_seconds) from None
        if message["type"] == "http.disconnect":
            self._complete = True
            raise ClientDisconnected
        self._complete = not message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        late = clock() - began - len(chunk) / _LEAST_RATE
        self._patience = min(self._patience - late, self._stall_seconds)
        return chunk

    async def _hold(self, size: int) -> None:
        """There are `size` bytes of this body now."""
        await self._in_flight.hold(self._share, max(size - _SMALL, 0))

    @property
    def complete(self) -> bool:
        """Whether all of it has come."""
        return self._complete

    async def drain(self) -> None:
        """Throw away what has come and what is still coming, up to a bound of bytes and time."""
        self.release()
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                while not self._complete and self._left > 0:
                    self._left -= len(await self._next())
        except (TimeoutError, ClientDisconnected, ApiError):
            return

    def release(self) -> None:
        """Its memory is free again."""
        self._in_flight.release(self._share)
