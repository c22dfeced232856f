"""One request and its answer: what the application receives of a connection, and what it sends there.

It does what uvicorn's class for this does, for a connection that has one request at a time. Most exchanges are small:
their whole request has come when the application asks for it, so nothing is made that waits for more.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Protocol

from starlette.types import ASGIApp, Message, Scope

log = logging.getLogger(__name__)

#: A header of an answer must not contain these: it could end, and others begin. Names are in lower case.
_NOT_IN_NAMES = re.compile(rb'[A-Z\x00-\x20\x7f()<>@,;:\[\]={}\\"]')
_NOT_IN_VALUES = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_STATUS_LINES = {status.value: b"HTTP/1.1 %d %s\r\n" % (status, status.phrase.encode()) for status in HTTPStatus}
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_FAILED = b"Internal Server Error"
_FAILED_HEADERS = [
    (b"content-type", b"text/plain; charset=utf-8"),
    (b"content-length", b"%d" % len(_FAILED)),
    (b"connection", b"close"),
]

Header = tuple[bytes, bytes]


class Flow:
    """Pauses reading until the application asks for more, and `hold`, which is stronger; and drains what is written."""

    __slots__ = ("_transport", "_writable", "held", "read_paused", "write_paused")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._writable: asyncio.Event | None = None
        self.held = self.read_paused = self.write_paused = False

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

    def resume_writing(self) -> None:
        """Let those go on who wait in `drain`."""
        self.write_paused = False
        if self._writable is not None:
            self._writable.set()
            self._writable = None

    async def drain(self) -> None:
        """Return when the client has taken enough."""
        if self._writable is None:
            self._writable = asyncio.Event()
        await self._writable.wait()


class Output(Protocol):
    """Where an answer is written."""

    def write(self, data: bytes) -> None:
        """Write the data."""

    def close(self) -> None:
        """Close the connection after what was written."""

    def is_closing(self) -> bool:
        """Whether the connection is closed, or will be soon."""


class Exchange:
    """`ended` is called when the answer is complete. `default_headers` stand before those of the application."""

    __slots__ = (
        *("__weakref__", "_came", "_chunked", "_default_headers", "_ended", "_flow", "_left", "_output"),
        *("_waits_for_100", "body", "disconnected", "keep_alive", "more_body", "response_complete"),
        *("response_started", "scope"),
    )

    def __init__(
        self,
        scope: Scope,
        output: Output,
        flow: Flow,
        ended: Callable[[], None],
        default_headers: list[Header],
        *,
        keep_alive: bool,
        waits_for_100: bool,
    ) -> None:
        self.scope = scope
        self.body: bytes | bytearray = b""
        """What has come and was not received yet."""
        self.more_body = True
        self.disconnected = False
        self.keep_alive = keep_alive
        self.response_started = self.response_complete = False
        self._output = output
        self._flow = flow
        self._ended = ended
        self._default_headers = default_headers
        self._waits_for_100 = waits_for_100
        self._came: asyncio.Event | None = None
        """Set when something comes that `receive` waits for."""
        self._chunked = False
        self._left = 0
        """Bytes of the answer's body that are still to come, if its length is known."""

    async def run(self, app: ASGIApp) -> None:
        """Have the application answer. If it fails, answer 500, or close the connection if its answer has begun."""
        try:
            await app(self.scope, self.receive, self.send)
        except BaseException as error:
            log.error("an exception in the application", exc_info=error)
            await self._fail()
        else:
            if not self.response_complete and not self.disconnected:
                log.error("the application has returned without a complete answer")
                await self._fail()
        finally:
            self._ended = _nothing  # otherwise only the garbage collector would free the connection

    async def _fail(self) -> None:
        if self.response_started:
            return self._output.close()
        await self.send({"type": "http.response.start", "status": 500, "headers": _FAILED_HEADERS})
        await self.send({"type": "http.response.body", "body": _FAILED})

    # --- the request ---------------------------------------------------------------------------------

    def wake(self) -> None:
        """Let `receive` look again: a part of the body came, or the client left."""
        if self._came is not None:
            self._came.set()

    def rest_of_body(self) -> bytes | None:
        """What the application has not received of the body yet. None if the client has not sent all of it."""
        if self.more_body or self.disconnected:
            return None
        rest, self.body = bytes(self.body), b""
        return rest

    async def receive(self) -> Message:
        """The next message for the application."""
        if self._waits_for_100 and not self._output.is_closing():
            self._output.write(_CONTINUE)
            self._waits_for_100 = False
        if not self.disconnected and not self.response_complete:
            self._flow.resume_reading()
            if self._came is None:
                self._came = asyncio.Event()
                if self.body or not self.more_body:
                    self._came.set()
            await self._came.wait()
            self._came.clear()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        body, self.body = bytes(self.body), b""
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    # --- the answer ----------------------------------------------------------------------------------

    async def send(self, message: Message) -> None:
        """Send a message of the application; nothing if the client has left. RuntimeError if it is out of turn."""
        if self._flow.write_paused and not self.disconnected:
            await self._flow.drain()
        if self.disconnected:
            return
        expected = "http.response.body" if self.response_started else "http.response.start"
        if message["type"] != expected or self.response_complete:
            raise RuntimeError(f"the application sends {message['type']} out of turn")
        if self.response_started:
            self._send_body(message.get("body", b""), more_body=message.get("more_body", False))
        else:
            self._send_head(message["status"], [*self._default_headers, *message.get("headers", ())])

    def _send_head(self, status: int, headers: list[Header]) -> None:
        self.response_started = True
        self._waits_for_100 = False
        _check([name for name, _ in headers], [value for _, value in headers])
        head, length, says_close = [_STATUS_LINES[status]], None, False
        for name, value in headers:
            head += (name, b": ", value, b"\r\n")
            if name == b"content-length":
                length = int(value)
            elif name == b"transfer-encoding":
                self._chunked = value.lower() == b"chunked"
            elif name == b"connection":
                says_close = b"close" in value.lower()
        if says_close:
            self.keep_alive = False
        elif not self.keep_alive:
            head.append(b"connection: close\r\n")
        if length is not None:
            self._left = length
        elif not self._chunked and self.scope["method"] != "HEAD" and status not in (204, 304):
            self._chunked = True
            head.append(b"transfer-encoding: chunked\r\n")
        head.append(b"\r\n")
        self._output.write(b"".join(head))

    def _send_body(self, body: bytes, *, more_body: bool) -> None:
        if self.scope["method"] == "HEAD":
            self._left = 0
        elif self._chunked:
            chunk = [b"%x\r\n" % len(body), body, b"\r\n"] if body else []
            self._output.write(b"".join([*chunk, b"" if more_body else b"0\r\n\r\n"]))
        elif len(body) > self._left:
            raise RuntimeError("an answer is longer than it says")
        else:
            self._left -= len(body)
            self._output.write(body)
        if more_body:
            return
        if self._left:
            raise RuntimeError("an answer is shorter than it says")
        self.response_complete = True
        self.wake()
        if not self.keep_alive:
            self._output.close()
        self._ended()


def _check(names: Iterable[bytes], values: Iterable[bytes]) -> None:
    """Raise RuntimeError if the name or the value of a header is not valid. All are searched at once."""
    if _NOT_IN_NAMES.search(b"".join(names)) or _NOT_IN_VALUES.search(b"".join(values)):
        raise RuntimeError("an answer has a header that is not valid")


def _nothing() -> None:
    pass
