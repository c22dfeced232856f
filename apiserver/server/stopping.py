"""Stops the servers of a process, one for each port, and logs why, what is still under way, and how long it took."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import time
from collections.abc import Callable, Iterator

import uvicorn

log = logging.getLogger(__name__)


class Stop:
    """The stop of the servers that `server` has made. `end_streams` ends answers that end no other way."""

    def __init__(self, end_streams: Callable[[], None]) -> None:
        self._end_streams = end_streams
        self._servers: list[_Server] = []
        self._why = ""
        self._began = 0.0
        self._is_told = False

    def server(self, config: uvicorn.Config) -> uvicorn.Server:
        """A new server, to be stopped with the others."""
        self._servers.append(_Server(config, self._begins))
        return self._servers[-1]

    def by_signal(self, number: int) -> None:
        """Stop the servers; the second call does not wait for requests under way. It can be called in any thread."""
        self.because_of(signal.Signals(number).name, hurried=self._servers[0].should_exit)

    def because_of(self, why: str, *, hurried: bool = False) -> None:
        """Stop the servers. It logs nothing, because a thread that hangs may hold the log's lock."""
        if not self._why:
            self._why, self._began = why, time.monotonic()
        for server in self._servers:
            server.force_exit = server.force_exit or hurried
            server.should_exit = True

    def ended(self) -> None:
        """Log that all is closed."""
        if self._why:
            log.info("stopped because of %s, in %.1f seconds", self._why, time.monotonic() - self._began)

    def _begins(self) -> None:
        under_way = sum(len(server.server_state.tasks) for server in self._servers)
        if under_way and not self._is_told:
            self._is_told = True
            log.info("stopping because of %s: requests are still under way: %d", self._why, under_way)
        self._end_streams()


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signals to `signals.py`: two such servers would overwrite each other's handlers."""

    def __init__(self, config: uvicorn.Config, begins: Callable[[], None]) -> None:
        super().__init__(config)
        self._begins = begins

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._begins()  # it ends live streams, as uvicorn waits for answers
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield
