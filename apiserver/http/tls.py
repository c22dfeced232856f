"""TLS between a socket and a connection of HTTP.

The connection of HTTP begins with the socket, before the handshake. So it has a slot from the first moment on, its
client has as long for the handshake and the first byte of a request as others for that byte alone, and it gives way to
others like any new connection. OpenSSL reads and writes buffers in memory here, and steps of handshakes take turns
(`handshakes.py`).
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from apiserver.common.ip_addresses import neighbourhood
from apiserver.http.certificate import Certificate
from apiserver.http.protocol import Protocol
from apiserver.http.refusals import WITHOUT_TLS
from apiserver.http.slots import Slots

log = logging.getLogger(__name__)

#: A record of TLS has so many bytes at most.
_RECORD = 16 * 2**10


class Tls(asyncio.Protocol, asyncio.Transport):
    """A protocol to the socket, and a transport to the connection of HTTP. The other arguments are Protocol's."""

    __slots__ = (
        *("_certificate", "_client", "_ended", "_handshakes", "_http", "_incoming", "_outgoing", "_paused", "_shaken"),
        *("_socket", "_tls", "_unsent", "_waits"),
    )

    def __init__(self, certificate: Certificate, slots: Slots, **server: Any) -> None:
        super().__init__()
        self._certificate = certificate
        self._handshakes = slots.handshakes
        self._http: Protocol | None = Protocol(slots, scheme="https", **server)
        self._unsent: list[bytes] = []  # what the handshake holds up
        self._shaken = False  # whether the handshake is over
        self._waits = False  # whether a step of the handshake waits for its turn
        self._paused = False  # whether the connection of HTTP wants nothing to be read
        self._ended = False  # whether it has nothing more to send

    # --- to the socket -------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        assert self._http is not None
        self._socket = transport
        peer = transport.get_extra_info("peername")  # None if the client has left already
        self._client = neighbourhood(peer[0]) if peer else ""
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = self._certificate.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._http.connection_made(self)

    def connection_lost(self, exc: Exception | None) -> None:
        http, self._http = self._http, None  # it has this transport, and only the garbage collector would free both
        if http is not None:
            http.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._shaken and self._ended:
            return  # the client was refused
        self._incoming.write(data)
        if self._shaken:
            self._read()
        elif not self._waits:
            self._waits = True
            self._read_or_pause()
            self._handshakes.wait(self._client, self._shake)

    def eof_received(self) -> None:
        """As of a socket without TLS: the connection is closed."""

    def pause_writing(self) -> None:
        if self._http is not None:
            self._http.pause_writing()

    def resume_writing(self) -> None:
        if self._http is not None:
            self._http.resume_writing()

    # --- TLS -----------------------------------------------------------------------------------------

    def _shake(self) -> None:
        """Go on with the handshake, as far as what has come allows."""
        self._waits = False
        if self._socket.is_closing():
            return
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError as error:
            return self._fail(error)
        else:
            self._shaken = True
            unsent, self._unsent = self._unsent, []
            self.writelines(unsent)
            if self._ended:
                return self.write_eof()
            self._read()
        self._read_or_pause()

    def _read(self) -> None:
        """Pass on what has come."""
        pieces: list[bytes] = []
        failure = None
        try:
            while piece := self._tls.read(_RECORD):
                pieces.append(piece)
        except ssl.SSLWantReadError:
            ended = False
        except ssl.SSLError as error:
            ended, failure = True, error
        else:
            ended = True
        if pieces and self._http is not None:
            self._http.data_received(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if failure is not None:
            self._fail(failure)
        elif ended:
            self.close()
        else:
            self._flush()

    def _fail(self, error: ssl.SSLError) -> None:
        """Tell the client what is wrong, and close."""
        log.debug("a client fails at TLS: %s", error.reason or error)
        self._flush()
        if error.reason == "HTTP_REQUEST":
            self._socket.write(WITHOUT_TLS)  # without TLS, as the request came
        self._socket.close()

    def _flush(self) -> None:
        if self._outgoing.pending and not self._socket.is_closing():
            self._socket.write(self._outgoing.read())

    def _end(self) -> None:
        """Say that nothing more comes, which a client could otherwise not tell from a broken connection."""
        with suppress(ssl.SSLError):  # the client has not said the same yet
            self._tls.unwrap()
        self._flush()

    def _read_or_pause(self) -> None:
        if self._socket.is_closing():
            return
        if self._paused or self._waits:
            self._socket.pause_reading()
        else:
            self._socket.resume_reading()

    # --- to the connection of HTTP -------------------------------------------------------------------

    def write(self, data: Any) -> None:
        self.writelines([data])

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        if not self._shaken:
            self._unsent += list_of_data
            return
        data = b"".join(list_of_data)
        if not data:
            return
        try:
            self._tls.write(data)
        except ssl.SSLError:
            self._socket.abort()
        else:
            self._flush()

    def write_eof(self) -> None:
        self._ended = True
        if self._shaken:
            self._end()
            self._socket.write_eof()

    def close(self) -> None:
        if self._shaken and not self._socket.is_closing():
            self._end()
        self._socket.close()

    def abort(self) -> None:
        self._socket.abort()

    def is_closing(self) -> bool:
        return self._socket.is_closing()

    def pause_reading(self) -> None:
        self._paused = True
        self._read_or_pause()

    def resume_reading(self) -> None:
        self._paused = False
        self._read_or_pause()

    def get_write_buffer_size(self) -> int:
        return self._socket.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._socket.set_write_buffer_limits(high, low)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._socket.get_extra_info(name, default)
