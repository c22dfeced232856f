"""The base of backups and checks that the server makes by itself: settings, a clock, attempts that may fail."""

from __future__ import annotations

from collections.abc import Callable

from apiserver.operating.backup.attempts import Attempts
from apiserver.operating.backup.bounds import BackupBounds
from apiserver.settings.settings import Settings


class Scheduled:
    """Work that is to be done again after a number of hours."""

    def __init__(
        self, settings: Settings, hours: float, bounds: BackupBounds | None, clock: Callable[[], float]
    ) -> None:
        self._clock = clock
        self._settings = settings
        self._bounds = bounds or BackupBounds()
        self._every = hours * 3600.0
        self._begun = clock()
        self._attempts = Attempts()

    def _state_since(self, last: float | None) -> str:
        """For people: "failed", "late" if it was last done twice as long ago as it is to be, or "ok".

        `last`: when it was done, in seconds since 1970. What was never done is late when the server runs for so long.
        """
        if self._attempts.failure is not None:
            return "failed"
        since = self._begun if last is None else last
        return "late" if self._clock() - since > 2 * self._every else "ok"
