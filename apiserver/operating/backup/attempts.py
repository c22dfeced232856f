"""When work at the destination may be tried again after a failure, and what anybody may know of the failure."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

from apiserver.operating.backup.storage import BackupError

#: Seconds until it is tried again.
RETRY = 600.0
#: The exceptions that count as a failure.
FAILURES = (BackupError, OSError)


class Attempts:
    """Attempts of one job of the server."""

    def __init__(self) -> None:
        self.failure: str | None = None
        """Why the last one failed, as anybody may know it; None if it did not fail."""
        self._next = -math.inf
        """When (monotonic) the next one may begin."""

    @property
    def may_begin(self) -> bool:
        """Whether no attempt has failed just now."""
        return time.monotonic() >= self._next

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Notes how an attempt ends, which is what is done inside the block."""
        try:
            yield
        except FAILURES as error:
            self.failure, self._next = _told_of(error), time.monotonic() + RETRY
            raise
        self.failure = None


def _told_of(error: BackupError | OSError) -> str:
    if isinstance(error, BackupError):
        return error.told or "the log says why"
    return f"no process can be started: {error.strerror}"
