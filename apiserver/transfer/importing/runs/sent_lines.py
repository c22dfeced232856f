"""Which lines of a run the server has already. Unlike points, lines that are sent again would be there twice."""

from __future__ import annotations

import hashlib
from array import array
from typing import Any, Protocol

import numpy as np

from apiserver.stores.documents.query import Document
from apiserver.transfer.importing.runs.bodies import as_json
from apiserver.transfer.importing.runs.model import Line
from apiserver.transfer.importing.runs.server import Server

#: Lines that are read at once.
_PAGE = 5000
_DIGEST_BYTES = 8


class SentLines(Protocol):
    """Is asked about each line of a run, in their order."""

    def has(self, line: Line) -> bool:
        """Whether the server has this line."""


class FirstLines:
    """The server has the first `count` lines that are asked about."""

    def __init__(self, count: int) -> None:
        self._left = count

    def has(self, line: Line) -> bool:
        self._left -= 1
        return self._left >= 0


class LinesThere:
    """The server has those lines of a task that it shows, whichever were deleted. A line takes 16 bytes of memory."""

    def __init__(self, server: Server, task: str) -> None:
        digests = array("Q")
        asked: Document = {"task": task, "batch_size": _PAGE, "navigate_earlier": False}
        while lines := server.call("events.get_task_log", asked)["events"]:
            digests.extend(
                _digest(one["timestamp"], one["msg"], one.get("metric"), one.get("variant")) for one in lines
            )
            asked["from_timestamp"] = lines[-1]["timestamp"]
        self._digests, self._counts = np.unique(np.array(digests, np.uint64), return_counts=True)

    def has(self, line: Line) -> bool:
        digest = np.uint64(_digest(line.timestamp, line.text, line.metric, line.variant))
        place = int(np.searchsorted(self._digests, digest))
        if place == len(self._digests) or self._digests[place] != digest or not self._counts[place]:
            return False
        self._counts[place] -= 1
        return True


def _digest(timestamp: int, text: str, *names: Any) -> int:
    """A digest of the fields that identify a line."""
    said = as_json([timestamp, text, *(name or "" for name in names)])
    return int.from_bytes(hashlib.blake2b(said, digest_size=_DIGEST_BYTES).digest(), "little")
