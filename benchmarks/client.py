"""A client that costs little CPU: it keeps one connection, prepares requests as bytes, and reads whole answers."""

from __future__ import annotations

import json
import socket
import time
from base64 import b64encode
from typing import Any

_REQUEST = "{method} /{path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}Content-Length: {length}\r\n\r\n"


class RequestFailed(RuntimeError):
    """The server answered a status that is not 200. After 429 and 503 the client tries again instead."""


class HungUp(RequestFailed):
    """The server closed the connection without an answer."""


class Connection:
    """A connection to 127.0.0.1. If the server has closed it, the client connects again.

    `headers` are sent with every request.
    """

    def __init__(self, port: int, headers: dict[str, str] | None = None) -> None:
        self._port = port
        self._socket = _connected(port)
        self._buffer = bytearray(2**20)
        self.headers = headers or {}
        self.refused = 0
        """How often the server answered 429 or 503."""

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def prepared(self, path: str, body: bytes, method: str = "POST") -> bytes:
        """The bytes of a request."""
        headers = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        return _REQUEST.format(method=method, path=path, headers=headers, length=len(body)).encode() + body

    def exchange(self, request: bytes) -> bytes:
        """Send a prepared request, and again after 429 and 503. Returns the body of the answer."""
        while True:
            try:
                status, head, body = self._exchanged(request)
            except (HungUp, ConnectionError):
                self._socket.close()
                self._socket = _connected(self._port)
                status, head, body = self._exchanged(request)
            if status == 200:
                return body
            if status not in (429, 503):
                raise RequestFailed(f"{status} {body[:500].decode(errors='replace')}")
            self.refused += 1
            time.sleep(float(_header(head, b"retry-after") or 1))

    def post(self, path: str, body: bytes) -> bytes:
        """Send a body. Returns the body of the answer."""
        return self.exchange(self.prepared(path, body))

    def get(self, path: str) -> bytes:
        """Send a GET. Returns the body of the answer."""
        return self.exchange(self.prepared(path, b"", "GET"))

    def call(self, path: str, request: dict[str, Any]) -> Any:
        """Send JSON, and return the JSON of the answer."""
        return json.loads(self.post(path, json.dumps(request).encode()))

    def _exchanged(self, request: bytes) -> tuple[int, bytes, bytes]:
        self._socket.sendall(request)
        filled, end = 0, -1
        while end < 0:
            filled += self._receive(filled)
            end = self._buffer.find(b"\r\n\r\n", 0, filled)
        head = bytes(self._buffer[:end]).lower()
        length = _header(head, b"content-length")
        if length is None:
            raise RequestFailed(f"an answer without a length: {head.decode(errors='replace')}")
        stop = end + 4 + int(length)
        if stop > len(self._buffer):
            self._buffer.extend(bytes(stop - len(self._buffer)))
        while filled < stop:
            filled += self._receive(filled)
        return int(head[9:12]), head, bytes(self._buffer[end + 4 : stop])

    def _receive(self, at: int) -> int:
        received = self._socket.recv_into(memoryview(self._buffer)[at:])
        if not received:
            raise RequestFailed("the server hung up within its answer") if at else HungUp("the server hung up")
        return received


def _connected(port: int) -> socket.socket:
    connected = socket.create_connection(("127.0.0.1", port), timeout=300)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


def _header(head: bytes, name: bytes) -> bytes | None:
    for line in head.split(b"\r\n"):
        if line.startswith(name + b":"):
            return line.partition(b":")[2].strip()
    return None


def logged_in(port: int, key: str, secret: str) -> Connection:
    """A connection that sends a token with every request."""
    basic = b64encode(f"{key}:{secret}".encode()).decode()
    connection = Connection(port, {"Authorization": f"Basic {basic}"})
    token = connection.call("auth.login", {})["data"]["token"]
    connection.headers = {"Authorization": f"Bearer {token}"}
    return connection
