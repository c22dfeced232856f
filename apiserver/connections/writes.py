"""Answers that leave in one piece; uvicorn writes head and body apart, a call of the kernel each."""

from __future__ import annotations

import asyncio
from typing import Any


class JoinedWrites:
    """A transport that writes all that comes in one turn of the event loop at once; else it is as the one inside."""

    def __init__(self, inside: asyncio.Transport) -> None:
        self._inside = inside
        self._waiting: list[bytes] = []
        self._loop = asyncio.get_running_loop()

    def write(self, data: bytes) -> None:
        """Write after what is waiting, when this turn of the event loop is over."""
        if not self._waiting:
            self._loop.call_soon(self._flush)
        self._waiting.append(data)

    def write_eof(self) -> None:
        """Write no more after what is waiting."""
        self._flush()
        self._inside.write_eof()

    def close(self) -> None:
        """Close when all is written."""
        self._flush()
        self._inside.close()

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting and not self._inside.is_closing():
            self._inside.writelines(waiting)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inside, name)
