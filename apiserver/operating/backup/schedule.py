"""Backups that the server makes by itself, as the settings `backup_to`, `backup_every` and `backup_keep` say."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime

from apiserver.common.escaping import shown
from apiserver.common.gauges import Gauges
from apiserver.common.repeating import Repeating
from apiserver.operating.backup import command, manifest
from apiserver.operating.backup.attempts import FAILURES
from apiserver.operating.backup.bounds import BackupBounds
from apiserver.operating.backup.destinations import storage
from apiserver.operating.backup.scheduled import Scheduled
from apiserver.operating.backup.storage import BackupError
from apiserver.settings.settings import Settings

log = logging.getLogger(__name__)


class ScheduledBackups(Scheduled):
    """Makes a backup whenever the newest one is `backup_every` hours old, also over restarts."""

    def __init__(
        self,
        settings: Settings,
        bounds: BackupBounds | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(settings, settings.backup_every, bounds, clock)
        self._newest: float | None = None
        """The moment of the newest backup that the last look found, in seconds since 1970."""
        self._looks = True
        """Whether to look before the next backup."""
        self.job = Repeating("a backup", self.make_if_due, self._bounds.look_seconds, expected=FAILURES)

    @property
    def newest(self) -> float | None:
        """The moment of the newest backup; None if there is none, nobody has looked, or the clock was just set back."""
        return None if self._newest is None or self._newest > self._clock() else self._newest

    @property
    def state(self) -> str:
        """For people: "ok", "failed", or "late": the newest backup is older than twice `backup_every`."""
        return self._state_since(self.newest)

    def report(self) -> dict[str, str | None]:
        """The fields of `/health`."""
        newest = self.newest
        said = None if newest is None else datetime.fromtimestamp(newest, UTC).isoformat(timespec="seconds")
        return {"state": self.state, "newest": said, "why": self._attempts.failure}

    def gauges(self) -> Gauges:
        """Its numbers in `/metrics`."""
        return {
            "backup_newest_seconds": ("When the newest backup was made.", lambda: self.newest or 0),
            "backup_well": ("0 if a backup failed or is late.", lambda: float(self.state == "ok")),
        }

    async def make_if_due(self) -> None:
        """Make a backup if one is due; BackupError."""
        if not self._attempts.may_begin or not (self._looks or self._is_due()):
            return
        with self._attempts.attempt(), command.turn(self._settings, "backup") as is_mine:
            if not is_mine:
                return
            self._looks = True  # again if this fails: a backup may be there, though its process ended badly
            self._newest = await asyncio.to_thread(self.look)  # somebody may have made one
            if self._is_due():
                await self.make()
                self._newest = await asyncio.to_thread(self.look)
            self._looks = False

    def _is_due(self) -> bool:
        return self.newest is None or self._clock() - self.newest >= self._every

    def look(self) -> float | None:
        """The moment of the newest backup that counts, as the destination has it."""
        place = storage(self._settings.backup_to, self._settings.backup_key)
        names, strays = manifest.listed(place)
        if strays:
            log.warning("no old backups are deleted, as there are %d names like %s", len(strays), shown(strays[0]))
        if ahead := manifest.ahead(names, self._clock()):
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

    async def make(self) -> None:
        """Make a backup, and log what is said of it; BackupError if none was made.

        If a backup was made and older ones could not be deleted, that is logged, and nothing failed: as long as there
        is a new backup, the server need not make another one soon.
        """
        ended = await command.run(
            self._settings, "--keep", str(self._settings.backup_keep), ending=self._bounds.ending_seconds
        )
        if ended.is_well:
            log.info("a backup was made: %s", ended.said)
        elif not ended.said:  # it says nothing until the backup is there
            raise BackupError(ended.why, ended.told)
        else:
            log.warning("a backup was made: %s; deleting older ones failed: %s", ended.said, ended.why)
