"""Listeners on 127.0.0.1 that note whoever connects to them: what a page sends out arrives here."""

from __future__ import annotations

import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tests.harness import free_ports

_ANSWER = b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Ears:
    """One port, over TCP and UDP, for each name; `heard` has the names whose port was sent something."""

    def __init__(self) -> None:
        self.heard: set[str] = set()
        self._sockets = selectors.DefaultSelector()

    def host(self, name: str) -> str:
        """Host and port for a name. A connection without a byte counts: also its address tells something."""
        [port] = free_ports(1)
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            listener = socket.socket(type=kind)
            listener.bind(("127.0.0.1", port))
            listener.setblocking(False)
            if kind == socket.SOCK_STREAM:
                listener.listen(16)
            self._sockets.register(listener, selectors.EVENT_READ, name)
        return f"127.0.0.1:{port}"

    def listen(self, ended: threading.Event) -> None:
        """Note who connects until the event is set."""
        while not ended.is_set():
            for key, _ in self._sockets.select(0.05):
                self.heard.add(key.data)
                listener = key.fileobj
                assert isinstance(listener, socket.socket)
                if listener.type == socket.SOCK_DGRAM:
                    listener.recv(65_536)
                else:
                    connection, _ = listener.accept()
                    with connection:
                        connection.sendall(_ANSWER)

    def close(self) -> None:
        """Close all ports."""
        for key in list(self._sockets.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        self._sockets.close()


@contextmanager
def listening() -> Iterator[Ears]:
    """Ears that hear until the block ends."""
    ears, ended = Ears(), threading.Event()
    thread = threading.Thread(target=ears.listen, args=(ended,), name="ears")
    thread.start()
    try:
        yield ears
    finally:
        ended.set()
        thread.join()
        ears.close()
