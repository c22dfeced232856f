"""Writes head and body of an answer together: to write them apart would take two system calls."""

from __future__ import annotations

import asyncio
from typing import Any


class JoinedWrites:
    """A transport that collects what is written in one turn of the event loop, and passes it on at its end."""

    def __init__(self, inside: asyncio.Transport) -> None:
        self._inside = inside
        self._waiting: list[bytes] = []
        self._loop = asyncio.get_running_loop()

    def write(self, data: bytes) -> None:
        """Write the data when this turn of the event loop is over."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(data)

    def write_eof(self) -> None:
        """Write what is waiting, then end the stream."""
        self._flush()
        self._inside.write_eof()

    def close(self) -> None:
        """Write what is waiting, then close."""
        self._flush()
        self._inside.close()

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting and not self._inside.is_closing():
            self._inside.writelines(waiting)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inside, name)
