"""uvicorn's HTTP protocol, fed one message at a time. Its connection is closed when the client is too slow.

A client may send requests without waiting for answers. They are answered one after the other, in a turn of the event
loop each. Until then they wait in the socket, because reading pauses; the few bytes that were already read wait here.

A body is read only as far as the application asks for it.
"""

from __future__ import annotations

import asyncio
import re
import socket
import struct
from functools import partial
from http import HTTPStatus
from math import inf
from typing import Any
from weakref import ref

import httptools
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from apiserver.connections.framing import ChunkedBody, Misframed, SizedBody, head_end, may_be_head
from apiserver.connections.slots import Idle, Slots
from apiserver.connections.writes import JoinedWrites

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


class Flow(FlowControl):
    """uvicorn's flow control, by which the application asks for more of a body, and `hold`, which is stronger."""

    held = False

    def pause_reading(self) -> None:
        """Read nothing until the application asks for more."""
        self.read_paused = True
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read on, unless reading is held: the application asks for more."""
        if self.read_paused:
            self.read_paused = False
            if not self.held:
                self._transport.resume_reading()

    def hold(self) -> None:
        """Read nothing until `release`, even if the application asks for more."""
        self.held = True
        self._transport.pause_reading()

    def release(self) -> None:
        """Read on, if the application has asked for more."""
        self.held = False
        if not self.read_paused:
            self._transport.resume_reading()


class Protocol(HttpToolsProtocol):
    """One connection, which takes one of the `slots`."""

    #: Python's fast access to attributes ends at thirty attributes, and uvicorn's own are nearly as many.
    __slots__ = (
        *("_slots", "_bounds", "_socket", "_of_proxy", "_state", "_since", "_kept", "_at", "_whole", "_length"),
        *("_chunked", "_body", "_forwarded", "_received", "_unsent", "_to_send", "_to_take", "_drained"),
    )

    flow: Flow

    def __init__(self, slots: Slots, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self._slots = slots
        self._bounds = slots.bounds
        self._state, self._since = _NEW, self.loop.time()
        self._kept, self._at = b"", 0  # bytes, from `_at` on, that the parser does not get yet
        self._length, self._chunked = 0, False  # what the request's headers say about its body
        self._body: SizedBody | ChunkedBody = _NO_BODY
        self._whole = False  # whether the parser has seen the end of the request
        self._forwarded: list[bytes] = []
        self._received = 0  # bytes of a body since the last look
        self._unsent = 0  # bytes of answers that the client had not taken at the last look
        self._to_send = self._to_take = self._bounds.stall_seconds  # seconds that the client may still be late
        self._drained = False  # whether the client has taken all answers at some time since the last look

    # --- the connection ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.connections.add(self)
        self._socket = transport
        self.transport = JoinedWrites(transport)  # type: ignore[assignment]
        self.flow = Flow(transport)
        self.scheme = "http"  # `server` stays None: nobody asks for it, and finding it out takes five system calls
        peer = transport.get_extra_info("peername")  # None if the client has left already
        self.client = (peer[0], peer[1]) if peer else None
        address = self.client[0] if self.client else ""
        self._of_proxy = self._slots.proxies.trusts(address)
        if not self._slots.enter(self, address):
            self._refuse(503)

    def connection_lost(self, exc: Exception | None) -> None:
        self._slots.leave(self)
        self._forget_kept()
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._drained = True
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
            self.loop.call_soon(self._go_on)

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
                self._state, self._since = _HEAD, self.loop.time()
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
            self._to_send, self._received = self._bounds.stall_seconds, 0
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
        self._received += end - at
        if end - at >= _MUCH and self._slots.turns.enough(end - at, self._read_on):
            self.flow.hold()
        if not self._feed(data if at == 0 and end == len(data) else memoryview(data)[at:end]):
            return at
        if self._whole is not self._body.complete:
            self._refuse(400)
        elif self._whole and self._state == _BODY:
            self._state = _ANSWER
        elif self._whole:
            self._state, self._since = _IDLE, self.loop.time()
        return end

    def _read_on(self) -> None:
        """Read on, after others have had their turn."""
        if not self._kept:
            self.flow.release()

    def _feed(self, data: bytes | memoryview) -> bool:
        """Give the parser the data; False if it refuses them, or sees another request in them."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            if not (isinstance(error.__context__, _Upgrade) and self._feed_again(bytes(data))):
                self._refuse(400)
                return False
        if self.cycle is None or self.cycle.scope is not self.scope:
            self._refuse(400)
            return False
        return True

    def _feed_again(self, head: bytes) -> bool:
        """Give a new parser a head without its offer of another protocol; False if it refuses the rest, too."""
        self.parser = httptools.HttpRequestParser(self)
        self._forwarded = []
        try:
            self.parser.feed_data(_UPGRADE.sub(rb"\r\nx-\1", head))
        except httptools.HttpParserError:
            return False
        return True

    # --- the parser's callbacks ----------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name not in _NOTED or self._note(name, value):
            self.headers.append((name, value))

    def _note(self, name: bytes, value: bytes) -> bool:
        """Read a header; returns whether the application sees it, too."""
        match name:
            case b"content-length":
                self._length = int(value)
            case b"transfer-encoding":
                self._chunked = True
            case b"expect":
                self.expect_100_continue = value.lower() == b"100-continue"
            case _ if not self._of_proxy:
                return not self._slots.proxies  # if proxies are set, nobody else may say where a request comes from
            case b"x-forwarded-for":
                self._forwarded.append(value)
        return True

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            raise _Upgrade
        if self._forwarded:
            forwarded, self._forwarded = self._forwarded, []
            self.scope["client"] = (self._slots.proxies.client(forwarded, self.client[0] if self.client else ""), 0)
        super().on_headers_complete()
        self.headers = []  # trailers go here, not into the headers that the application reads
        self.scope["extensions"] = {
            REST_OF_BODY: partial(_rest_of_body, ref(self.cycle)),  # type: ignore[dict-item]
            LIMIT_UNSENT: self._socket.set_write_buffer_limits,  # type: ignore[dict-item]
        }

    def on_body(self, body: bytes) -> None:
        """Like uvicorn's, but a piece that comes alone is not copied."""
        cycle = self.cycle
        if cycle.response_complete:
            return
        if not cycle.body:
            cycle.body = body  # type: ignore[assignment]
        elif isinstance(cycle.body, bytearray):
            cycle.body += body
        else:
            cycle.body = bytearray(cycle.body) + body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        self._whole = True
        if not self.cycle.response_complete:
            self.cycle.more_body = False
            self.cycle.message_event.set()

    # --- answers -------------------------------------------------------------------------------------

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self._socket.is_closing():
            return
        if self._state == _ANSWER:
            self._state, self._since = _IDLE, self.loop.time()
            self.flow.resume_reading()
            if self._kept:
                self.loop.call_soon(self._go_on)
        elif self.expect_100_continue:
            self.transport.close()  # the next bytes may be the body or another request: nobody can tell
        else:
            self._state, self._since = _REST, self.loop.time()
            self.flow.resume_reading()

    def _refuse(self, status: int) -> None:
        """Answer `status`, unless an answer has begun, and close the connection."""
        self._state, self._since = _REFUSED, self.loop.time()
        self._forget_kept()
        cycle = self.cycle
        under_way = cycle is not None and not cycle.response_complete
        if under_way:
            cycle.disconnected = True
            cycle.message_event.set()
        if under_way and cycle.response_started:
            return self._abort()
        self.transport.write(_ANSWERS[status])
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
        if not self._takes(passed):
            return self._abort()
        if self._socket.is_closing():
            return
        if self._unsent and self._state == _IDLE:
            self._since = now  # the client is not idle before it has its answer
        wait = _WAITS.get(self._state)
        if wait is not None and now - self._since > getattr(self._bounds, wait):
            self._end_waiting()
        elif self._state == _BODY and not self._sends(passed):
            self._refuse(408)

    def _takes(self, passed: float) -> bool:
        """Whether the client takes its answers fast enough."""
        unsent = self._socket.get_write_buffer_size()
        taken = max(self._unsent - unsent, 0)
        self._to_take = self._left(self._to_take, passed, taken) if unsent and not self._drained else inf
        self._unsent, self._drained = unsent, False
        return self._to_take >= 0

    def _sends(self, passed: float) -> bool:
        """Whether the client sends its body fast enough, as long as the server reads it."""
        sent, self._received = self._received, 0
        if not (self.flow.read_paused or self.flow.held):
            self._to_send = self._left(self._to_send, passed, sent)
        return self._to_send >= 0

    def _left(self, patience: float, passed: float, moved: int) -> float:
        """The patience that is left after `passed` seconds in which `moved` bytes came or went.

        For example, at 4 KB a second, 8 KB in 3 seconds use up one second of patience.
        """
        late = passed - moved / self._bounds.least_rate
        return min(patience - late, self._bounds.stall_seconds)

    def _end_waiting(self) -> None:
        if self._state == _HEAD:
            self._refuse(408)
        elif self._state == _REFUSED:
            self._abort()
        else:
            self.transport.close()

    def idle_since(self) -> Idle | None:
        """See `slots.Connection`."""
        if self._state not in _BEFORE_REQUEST or self._unsent or self._socket.is_closing():
            return None
        return self.cycle is not None, self._since

    def give_way(self) -> None:
        """See `slots.Connection`. A first request may be on its way: then its client gets an answer, not a reset."""
        if self.cycle is None:
            self._refuse(503)
        else:
            self.transport.close()


def _rest_of_body(request: ref[RequestResponseCycle]) -> bytes | None:
    """The part of a body that the application has not received yet; None if some of it is still to come.

    The reference is weak because a request has its scope, and the scope has this function. With a strong one, only the
    garbage collector would free requests and their connections, and nobody is answered while it looks for them.

    Most bodies are complete when the application asks. Then it need not call `receive` under a timer, which would take
    a tenth of the time of a small request.
    """
    cycle = request()
    if cycle is None or cycle.more_body or cycle.disconnected:
        return None
    rest, cycle.body = bytes(cycle.body), b""  # type: ignore[assignment]
    return rest


def _answer(status: HTTPStatus, *headers: bytes) -> bytes:
    phrase = status.phrase.encode()
    head = (
        b"HTTP/1.1 %d %s" % (status, phrase),
        b"content-type: text/plain; charset=utf-8",
        b"content-length: %d" % len(phrase),
        *headers,
        b"connection: close",
    )
    return b"\r\n".join([*head, b"", phrase])


_ANSWERS = {
    400: _answer(HTTPStatus.BAD_REQUEST),
    408: _answer(HTTPStatus.REQUEST_TIMEOUT),
    431: _answer(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
    503: _answer(HTTPStatus.SERVICE_UNAVAILABLE, b"retry-after: 2"),
}
