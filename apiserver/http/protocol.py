"""One connection of HTTP, whose parser is fed one message at a time. It is closed when the client is too slow.

A client may send requests without waiting for answers. They are answered one after the other, in a turn of the event
loop each. Until then they wait in the socket, because reading pauses; the few bytes that were already read wait here.

A body is read only as far as the application asks for it.
"""

from __future__ import annotations

import asyncio
import contextvars
import re
import socket
import struct
from functools import partial
from typing import Any
from urllib.parse import unquote
from weakref import ref

import httptools
import uvicorn
from starlette.types import Scope
from uvicorn.server import ServerState

from apiserver.http.exchange import Exchange, Flow, Header
from apiserver.http.framing import ChunkedBody, Misframed, SizedBody, head_end, may_be_head
from apiserver.http.patience import Patience
from apiserver.http.refusals import REFUSALS
from apiserver.http.slots import Idle, Slots
from apiserver.http.writes import JoinedWrites

#: The states of a connection. Each says what it waits for:
#:   NEW      the first byte of its first request
#:   IDLE     the next request
#:   HEAD     the rest of a head
#:   BODY     the rest of a body
#:   ANSWER   the application's answer; the request is complete
#:   REST     the rest of a body whose request is answered
#:   REFUSED  that the client reads why it was refused
_NEW, _IDLE, _HEAD, _BODY, _ANSWER, _REST, _REFUSED = range(7)
_BEFORE_REQUEST = (_NEW, _IDLE, _HEAD)
#: The bound of the time in a state, by its name in `ConnectionBounds`.
_WAITS = {
    _NEW: "silent_seconds",
    _IDLE: "idle_seconds",
    _HEAD: "head_seconds",
    _REST: "rest_seconds",
    _REFUSED: "linger_seconds",
}
_NO_BODY = SizedBody(0)
#: Bytes of a piece of a body that counts for `ReadingTurns`; smaller ones keep nobody waiting.
_MUCH = 64 * 2**10
#: Bytes of a body that may wait for the application before reading pauses.
_MOST_WAITING = 64 * 2**10
_ASGI = {"version": "3.0", "spec_version": "2.3"}

#: Headers that this module reads.
_FORWARDED = frozenset((b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto"))
_NOTED = _FORWARDED | {b"content-length", b"transfer-encoding", b"expect"}
#: The name of `_rest_of_body` among the scope's extensions.
REST_OF_BODY = "rest_of_body"
#: The name of `set_write_buffer_limits` of the connection, among the same: for answers that go on for long.
LIMIT_UNSENT = "limit_unsent"
_UPGRADE = re.compile(rb"\r\n(upgrade[ \t]*:)", re.IGNORECASE)


class _Upgrade(Exception):
    """The request offers another protocol. The server may ignore the offer, but the parser stops at it."""


class Protocol(asyncio.Protocol):
    """One connection, which takes one of the `slots`. The other arguments are those that uvicorn's server gives."""

    __slots__ = (
        *("_app", "_at", "_body", "_bounds", "_chunked", "_continues", "_forwarded", "_headers", "_kept", "_length"),
        *("_loop", "_of_proxy", "_parser", "_parting", "_patience", "_scheme", "_scope", "_since", "_slots"),
        *("_socket", "_state", "_url", "_uvicorn", "_whole", "client", "exchange", "flow", "transport"),
    )

    def __init__(
        self,
        slots: Slots,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        scheme: str = "http",
    ) -> None:
        if not config.loaded:
            config.load()
        self._app = config.loaded_app
        self._scheme = scheme
        self._parting = False  # whether the server stops
        self._loop = _loop or asyncio.get_running_loop()
        self._uvicorn = server_state
        self._slots = slots
        self._bounds = slots.bounds
        self._parser = self._new_parser()
        self._state, self._since = _NEW, self._loop.time()
        self._kept, self._at = b"", 0  # bytes, from `_at` on, that the parser does not get yet
        self._length, self._chunked = 0, False  # what the request's headers say about its body
        self._body: SizedBody | ChunkedBody = _NO_BODY
        self._whole = False  # whether the parser has seen the end of the request
        self._continues = False  # whether the client waits for a word before it sends the body
        self._forwarded: list[bytes] = []
        self._patience = Patience(slots.bounds)
        self._scope: Scope | None = None
        self.exchange: Exchange | None = None

    def _new_parser(self) -> Any:
        parser = httptools.HttpRequestParser(self)
        # Otherwise it would refuse what comes behind a request that says that it is the last one.
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
        return parser

    # --- the connection ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._uvicorn.connections.add(self)  # type: ignore[arg-type]  # it calls `shutdown` only
        self._socket = transport
        self.transport = JoinedWrites(transport)
        self.flow = Flow(transport)
        peer = transport.get_extra_info("peername")  # None if the client has left already
        self.client = (peer[0], peer[1]) if peer else None
        address = self.client[0] if self.client else ""
        self._of_proxy = self._slots.proxies.trusts(address)
        if not self._slots.enter(self, address):
            self._refuse(503)

    def connection_lost(self, exc: Exception | None) -> None:
        self._slots.leave(self)
        self._forget_kept()
        self._uvicorn.connections.discard(self)
        if self.exchange is not None:
            self.exchange.disconnected |= not self.exchange.response_complete
            self.exchange.wake()
        self.flow.resume_writing()
        if exc is None:
            self.transport.close()
        self._parser = None  # it has this connection, and only the garbage collector would free both

    def shutdown(self) -> None:
        """The server stops: close the connection when its request is answered.

        If it has none, one may be on its way, so it is closed a moment later. Where another server takes over the port,
        no client then sees that its connection was closed before it could ask.
        """
        self._parting = True
        if self.exchange is None or self.exchange.response_complete:
            self._loop.call_later(self._bounds.parting_seconds, self._part)
        else:
            self.exchange.keep_alive = False

    def _part(self) -> None:
        if self.exchange is None or self.exchange.response_complete:
            self.transport.close()

    def eof_received(self) -> None:
        """The client sends no more. It may still wait for an answer."""

    def pause_writing(self) -> None:
        self.flow.write_paused = True

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        self._patience.drained = True
        self._go_on()

    # --- what comes ----------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._state == _REFUSED:
            return
        if self._kept:
            self._read(self._kept[self._at :] + data, 0)
        else:
            self._read(data, 0)

    def _go_on(self) -> None:
        """Go on with the bytes that were kept, if it is their turn."""
        if not self._kept or self._state in (_HEAD, _ANSWER) or self._socket.is_closing():
            return
        if self._state == _IDLE and self.flow.write_paused:
            return  # the client takes no answers, so it gets no more of them
        self.flow.release()
        self._read(self._kept, self._at)

    def _read(self, data: bytes, at: int) -> None:
        """Give the parser the data from `at` on, as far as it may have them, and keep the rest."""
        if self._state in _BEFORE_REQUEST:
            at = self._read_head(data, at)
        if at < len(data) and self._state in (_BODY, _REST):
            at = self._read_body(data, at)
        if self._state == _REFUSED:
            return
        if at == len(data):
            self._forget_kept()
            return
        if not self._slots.keep(len(self._kept), len(data)):
            return self._refuse(503)
        self._kept, self._at = data, at
        if self._state == _HEAD:
            return
        self.flow.hold()
        if self._state != _ANSWER:
            self._loop.call_soon(self._go_on)

    def _forget_kept(self) -> None:
        if self._kept:
            self._slots.keep(len(self._kept), 0)
            self._kept = b""

    def _read_head(self, data: bytes, at: int) -> int:
        """Read a head if all of it has come; returns the position after it."""
        if data[at] in b"\r\n":  # empty lines may precede a request
            at = len(data) - len(data[at:].lstrip(b"\r\n"))
        end = head_end(data, at)
        if (len(data) if end < 0 else end) - at > self._bounds.head_bytes:
            self._refuse(431)
            return at
        if end < 0:
            if not may_be_head(data, at):
                self._refuse(400)
            elif self._state != _HEAD:
                self._state, self._since = _HEAD, self._loop.time()
            return at
        self._state, self._length = _BODY, 0
        self._whole = self._chunked = False
        if not self._feed(data if at == 0 and end == len(data) else data[at:end]):
            return at
        has_body = self._chunked or self._length > 0
        if self._whole is has_body:
            self._refuse(400)
        elif not has_body:
            self._state = _ANSWER
        else:
            self._body = ChunkedBody() if self._chunked else SizedBody(self._length)
            self._patience.begin_body()
            if end == len(data):
                self.flow.pause_reading()
        return end

    def _read_body(self, data: bytes, at: int) -> int:
        """Read what has come of the body, as far as this turn allows; returns the position after it."""
        try:
            end = self._body.take(data, at)
        except Misframed:
            self._refuse(400)
            return at
        self._patience.received += end - at
        if end - at >= _MUCH and self._slots.turns.enough(end - at, self._read_on):
            self.flow.hold()
        if not self._feed(data if at == 0 and end == len(data) else memoryview(data)[at:end]):
            return at
        if self._whole is not self._body.complete:
            self._refuse(400)
        elif self._whole and self._state == _BODY:
            self._state = _ANSWER
        elif self._whole:
            self._state, self._since = _IDLE, self._loop.time()
        return end

    def _read_on(self) -> None:
        """Read on, after others have had their turn."""
        if not self._kept:
            self.flow.release()

    def _feed(self, data: bytes | memoryview) -> bool:
        """Give the parser the data; False if it refuses them, or sees another request in them."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            if not (isinstance(error.__context__, _Upgrade) and self._feed_again(bytes(data))):
                self._refuse(400)
                return False
        if self.exchange is None or self.exchange.scope is not self._scope:
            self._refuse(400)
            return False
        return True

    def _feed_again(self, head: bytes) -> bool:
        """Give a new parser a head without its offer of another protocol; False if it refuses the rest, too."""
        self._parser = self._new_parser()
        self._forwarded = []
        try:
            self._parser.feed_data(_UPGRADE.sub(rb"\r\nx-\1", head))
        except httptools.HttpParserError:
            return False
        return True

    # --- the parser's callbacks ----------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._scope = None
        self._url = b""
        self._continues = False
        self._headers: list[Header] = []

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if (name not in _NOTED and name != self._slots.proxies.user_header) or self._note(name, value):
            self._headers.append((name, value))

    def _note(self, name: bytes, value: bytes) -> bool:
        """Read a header; returns whether the application sees it, too."""
        match name:
            case b"content-length":
                self._length = int(value)
            case b"transfer-encoding":
                self._chunked = True
            case b"expect":
                self._continues = value.lower() == b"100-continue"
            case _ if not self._of_proxy:
                return not self._slots.proxies  # if proxies are set, nobody else may say where a request comes from
            case b"x-forwarded-for":
                self._forwarded.append(value)
            case self._slots.proxies.user_header:
                return not self._joined(name, value)
        return True

    def _joined(self, name: bytes, value: bytes) -> bool:
        """Add a value to that of the same header, with a comma between; False if it is the first one.

        So one that the client sent does not pass for the one that the proxy added, wherever the proxy adds it.
        """
        for at, (known, before) in enumerate(self._headers):
            if known == name:
                self._headers[at] = name, before + b", " + value
                return True
        return False

    def on_headers_complete(self) -> None:
        if self._parser.should_upgrade():
            raise _Upgrade
        self._scope = self._new_scope()
        self._headers = []  # trailers go here, not into the headers that the application reads
        self.exchange = exchange = Exchange(
            self._scope,
            self.transport,
            self.flow,
            self._on_answered,
            self._uvicorn.default_headers,
            keep_alive=not self._parting and self._scope["http_version"] != "1.0" and self._parser.should_keep_alive(),
            waits_for_100=self._continues,
        )
        self._scope["extensions"] = {
            REST_OF_BODY: partial(_rest_of_body, ref(exchange)),
            LIMIT_UNSENT: self._socket.set_write_buffer_limits,
        }
        # In a context of its own, so that a request gets no context of the one before it on its connection.
        task = self._loop.create_task(exchange.run(self._app), context=contextvars.Context())
        self._uvicorn.tasks.add(task)
        task.add_done_callback(self._uvicorn.tasks.discard)

    def _new_scope(self) -> Scope:
        """What the application is told about the request."""
        client = self.client
        if self._forwarded:
            forwarded, self._forwarded = self._forwarded, []
            client = (self._slots.proxies.client(forwarded, client[0] if client else ""), 0)
        url = httptools.parse_url(self._url)
        path = url.path.decode("ascii")
        return {
            "type": "http",
            "asgi": _ASGI,
            "http_version": self._parser.get_http_version(),
            "server": None,  # nobody asks for it, and finding it out takes five system calls
            "client": client,
            "scheme": self._scheme,
            "root_path": "",
            "headers": self._headers,
            "method": self._parser.get_method().decode("ascii"),
            "path": unquote(path) if "%" in path else path,
            "raw_path": url.path,
            "query_string": url.query or b"",
        }

    def on_body(self, body: bytes) -> None:
        exchange = self.exchange
        assert exchange is not None
        if exchange.response_complete:
            return
        if not exchange.body:
            exchange.body = body  # a piece that comes alone is not copied
        elif isinstance(exchange.body, bytearray):
            exchange.body += body
        else:
            exchange.body = bytearray(exchange.body) + body
        if len(exchange.body) > _MOST_WAITING:
            self.flow.pause_reading()
        exchange.wake()

    def on_message_complete(self) -> None:
        self._whole = True
        exchange = self.exchange
        if exchange is not None and not exchange.response_complete:
            exchange.more_body = False
            exchange.wake()

    # --- answers -------------------------------------------------------------------------------------

    def _on_answered(self) -> None:
        self._uvicorn.total_requests += 1
        if self._socket.is_closing():
            return
        if self._state == _ANSWER:
            self._state, self._since = _IDLE, self._loop.time()
            self.flow.resume_reading()
            if self._kept:
                self._loop.call_soon(self._go_on)
        elif self._continues:
            self.transport.close()  # the next bytes may be the body or another request: nobody can tell
        else:
            self._state, self._since = _REST, self._loop.time()
            self.flow.resume_reading()

    def _refuse(self, status: int) -> None:
        """Answer `status`, unless an answer has begun, and close the connection."""
        self._state, self._since = _REFUSED, self._loop.time()
        self._forget_kept()
        exchange = self.exchange
        if exchange is not None and not exchange.response_complete:
            exchange.disconnected = True
            exchange.wake()
            if exchange.response_started:
                return self._abort()
        self.transport.write(REFUSALS[status])
        if self._slots.linger(self):
            self.transport.write_eof()
            self.flow.resume_reading()
            self.flow.release()
        else:
            self.transport.close()

    def _abort(self) -> None:
        """Close the connection at once, and have the system drop what it has not sent."""
        self._socket.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.abort()

    # --- slow clients --------------------------------------------------------------------------------

    def look(self, now: float, passed: float) -> None:
        """Close the connection if its client is late; `passed`: seconds since the last look."""
        if not self._patience.takes_in_time(self._socket.get_write_buffer_size(), passed):
            return self._abort()
        if self._socket.is_closing():
            return
        if self._patience.unsent and self._state == _IDLE:
            self._since = now  # the client is not idle before it has its answer
        wait = _WAITS.get(self._state)
        if wait is not None and now - self._since > getattr(self._bounds, wait):
            self._end_waiting()
        elif self._state == _BODY:
            is_read = not (self.flow.read_paused or self.flow.held)
            if not self._patience.sends_in_time(passed, is_read=is_read):
                self._refuse(408)

    def _end_waiting(self) -> None:
        if self._state == _HEAD:
            self._refuse(408)
        elif self._state == _REFUSED:
            self._abort()
        else:
            self.transport.close()

    def idle_since(self) -> Idle | None:
        """See `slots.Connection`."""
        if self._state not in _BEFORE_REQUEST or self._patience.unsent or self._socket.is_closing():
            return None
        return self.exchange is not None, self._since

    def give_way(self) -> None:
        """See `slots.Connection`. A first request may be on its way: then its client gets an answer, not a reset."""
        if self.exchange is None:
            self._refuse(503)
        else:
            self.transport.close()


def _rest_of_body(request: ref[Exchange]) -> bytes | None:
    """The part of a body that the application has not received yet; None if some of it is still to come.

    The reference is weak because a request has its scope, and the scope has this function. With a strong one, only the
    garbage collector would free requests and their connections, and nobody is answered while it looks for them.

    Most bodies are complete when the application asks. Then it need not call `receive` under a timer, which would take
    a tenth of the time of a small request.
    """
    exchange = request()
    return None if exchange is None else exchange.rest_of_body()
