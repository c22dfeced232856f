"""Backups that the server makes by itself, as the settings `backup_to`, `backup_every` and `backup_keep` say.

Each is made by `apiserver backup` in a process of its own: a process that serves must not read its own databases in
this way (`stores/pages.py` says why), and would answer slowly meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import sys
import time
from datetime import UTC, datetime

from apiserver.metrics.gauges import Gauges
from apiserver.operating.backup import manifest
from apiserver.operating.backup.storage import BackupError, storage
from apiserver.operating.escaping import shown
from apiserver.repeating import Repeating
from apiserver.settings import EMBEDDED, ENVIRONMENT_PREFIX, Settings

#: Seconds between two looks at the clock.
_LOOK = 30.0
#: Seconds until a backup that failed is tried again.
RETRY = 600.0
_ENDING = 10.0

log = logging.getLogger(__name__)


class ScheduledBackups:
    """Makes a backup whenever the newest one is `backup_every` hours old, also over restarts."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._every = settings.backup_every * 3600.0
        self._begun = time.time()
        self._next_try = -math.inf
        """When (monotonic) a backup may be made again after a failure."""
        self._newest: float | None = None
        """The moment of the newest backup that the last look found, in seconds since 1970."""
        self._looks = True
        """Whether to look before the next backup."""
        self.failed = False
        """Whether the last attempt failed."""
        self.job = Repeating("a backup", self._make_if_due, _LOOK, expected=(BackupError, OSError))

    @property
    def newest(self) -> float | None:
        """The moment of the newest backup; None if there is none, nobody has looked, or the clock was just set back."""
        return None if self._newest is None or self._newest > time.time() else self._newest

    @property
    def state(self) -> str:
        """For people: "ok", "failed", or "late": the newest backup is older than twice `backup_every`."""
        if self.failed:
            return "failed"
        since = self.newest if self.newest is not None else self._begun
        return "late" if time.time() - since > 2 * self._every else "ok"

    def report(self) -> dict[str, str | None]:
        """What `/health` tells."""
        newest = self.newest
        said = None if newest is None else datetime.fromtimestamp(newest, UTC).isoformat(timespec="seconds")
        return {"state": self.state, "newest": said}

    def gauges(self) -> Gauges:
        """Its numbers in `/metrics`."""
        return {
            "backup_newest_seconds": ("When the newest backup was made.", lambda: self.newest or 0),
            "backup_well": ("0 if a backup failed or is late.", lambda: float(self.state == "ok")),
        }

    async def _make_if_due(self) -> None:
        if time.monotonic() < self._next_try:
            return
        try:
            if self._looks or self.newest is None:
                self._newest = await asyncio.to_thread(self._look)
                self._looks = False
            if self.newest is None or time.time() - self.newest >= self._every:
                await self._make()
                self._newest = await asyncio.to_thread(self._look)
            self.failed = False
        except (BackupError, OSError):
            self.failed, self._next_try = True, time.monotonic() + RETRY
            self._looks = True  # a backup may be there, though the process that made it ended badly
            raise

    def _look(self) -> float | None:
        place = storage(self._settings.backup_to, self._settings.backup_key)
        names, strays = manifest.listed(place)
        if strays:
            log.warning("no old backups are deleted, as there are %d names like %s", len(strays), shown(strays[0]))
        if ahead := manifest.ahead(names):
            text = "backups whose time is ahead do not count until the clock has come there: %d, the last one is %s"
            log.warning(text, len(ahead), ahead[-1])
        for name in reversed(names[: len(names) - len(ahead)]):
            try:
                if place.key:
                    manifest.check(place, name)
                return manifest.time_of(name)
            except BackupError as error:
                log.warning("a backup does not count: %s", error)
        return None

    async def _make(self) -> None:
        """Make a backup, and log what is said of it; BackupError if none was made.

        If a backup was made and older ones could not be deleted, that is logged, and nothing failed: as long as there
        is a new backup, the server need not make another one soon.
        """
        settings = self._settings
        options = ["--data", str(settings.data), "--events", EMBEDDED, "--documents", EMBEDDED]
        arguments = ["backup", settings.backup_to, *options, "--keep", str(settings.backup_keep)]
        key = {f"{ENVIRONMENT_PREFIX}BACKUP_KEY": settings.backup_key} if settings.backup_key else {}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "apiserver", *arguments),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **key},
        )
        try:
            said, errors = await process.communicate()
        except BaseException:  # the server stops; the next start goes on with this backup
            process.kill()
            await asyncio.wait_for(process.wait(), _ENDING)
            raise
        made = "; ".join(said.decode(errors="replace").splitlines())  # empty until the backup is there
        if process.returncode == 0:
            log.info("a backup was made: %s", made)
            return
        # Lines about the work come first, then the error. A process that was killed says no error.
        lines = errors.decode(errors="replace").splitlines() if process.returncode == 1 else []
        why = lines[-1].removeprefix("apiserver: ") if lines else f"it ended with {process.returncode}"
        if not made:
            raise BackupError(why)
        log.warning("a backup was made: %s; deleting older ones failed: %s", made, why)
