"""Checks of backups that the server makes by itself, as the setting `backup_check_every` says (`rereading.py`)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import cached_property

from apiserver.common.escaping import shown
from apiserver.common.gauges import Gauges
from apiserver.common.repeating import Repeating
from apiserver.common.sizes import counted
from apiserver.common.times import epoch_millis
from apiserver.operating.backup import checking, command, rereading
from apiserver.operating.backup.attempts import FAILURES
from apiserver.operating.backup.bounds import BackupBounds
from apiserver.operating.backup.destinations import storage
from apiserver.operating.backup.rereading import State
from apiserver.operating.backup.scheduled import Scheduled
from apiserver.operating.backup.storage import BackupError
from apiserver.settings.settings import Settings
from apiserver.stores.data_folder import DataFolder

#: Lines of what is wrong that are logged.
_LOGGED = 20

log = logging.getLogger(__name__)


class ScheduledChecks(Scheduled):
    """Reads what lies at the destination when that was last done `backup_check_every` hours ago, also over restarts."""

    def __init__(
        self,
        settings: Settings,
        bounds: BackupBounds | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(settings, settings.backup_check_every, bounds, clock)
        self._state = State("")
        self.job = Repeating("a check of backups", self.check_if_due, self._bounds.look_seconds, expected=FAILURES)

    @property
    def state(self) -> str:
        """For people: "damaged", "failed", "late" (all was last read twice `backup_check_every` ago), or "ok"."""
        return "damaged" if self._state.wrong else self._state_since(self.ended() or None)

    def report(self) -> dict[str, str | int | None]:
        """The fields of `/health`."""
        wrong, ended = len(self._state.wrong), self._state.ended or None
        return {"state": self.state, "ended": ended, "findings": wrong, "why": self._attempts.failure}

    def gauges(self) -> Gauges:
        """Its numbers in `/metrics`."""
        return {
            "backup_check_findings": ("What is damaged or missing of backups.", lambda: len(self._state.wrong)),
            "backup_check_ended_seconds": ("When all backups were last read.", self.ended),
            "backup_check_well": (
                "0 if reading backups failed or is late.",
                lambda: float(self.state not in ("failed", "late")),
            ),
        }

    def ended(self) -> float:
        """When all was last read, in epoch seconds; 0: never."""
        return (epoch_millis(self._state.ended) or 0) / 1000 if self._state.ended else 0

    async def check_if_due(self) -> None:
        """Read all that lies there if that is due; BackupError."""
        self._state = await asyncio.to_thread(self._look)  # a backup may have mended something
        is_due = bool(self._state.place) or not 0 <= self._clock() - self.ended() < self._every
        if not is_due or not self._attempts.may_begin:
            return
        with self._attempts.attempt(), command.turn(self._settings, "check") as is_mine:
            if not is_mine:
                return
            before = self._state.ended
            ended = await command.run(self._settings, "--check", "--gently", ending=self._bounds.ending_seconds)
            self._state = await asyncio.to_thread(self._look)
            if self._state.ended == before:
                raise BackupError(ended.why, ended.told)
        wrong = self._state.wrong
        for line in wrong[:_LOGGED]:
            log.error("%s", shown(line))
        if wrong:
            log.error("%s", checking.REMEMBERED_ADVICE)
        log.info("backups were read: %s; %s", ended.said, counted(len(wrong), "findings"))

    def _look(self) -> State:
        """The damage that the last check found, and the backups since."""
        return rereading.read_state(DataFolder(self._settings.data), self._address)

    @cached_property
    def _address(self) -> str:
        """The destination, as the state names it: to open a bucket takes longer than all else of a look."""
        return storage(self._settings.backup_to).address
