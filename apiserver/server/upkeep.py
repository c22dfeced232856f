"""Builds what a server does by itself: backups and their checks, retention, scrubbing, the audit log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from apiserver.common.gauges import Gauges
from apiserver.operating.audit.log import AuditLog
from apiserver.operating.backup.check_schedule import ScheduledChecks
from apiserver.operating.backup.schedule import ScheduledBackups
from apiserver.operating.doctor.scrub import Scrub
from apiserver.operating.retention.schedule import ScheduledRetention
from apiserver.server.bounds import Bounds
from apiserver.services.backend import Backend
from apiserver.stores.data_folder import DataFolder
from apiserver.stores.engines import event_engine


class Job(Protocol):
    """What the server does in the background."""

    def start(self) -> None:
        """Begin."""

    async def close(self) -> None:
        """End, also in the middle."""


class Reporter(Protocol):
    """A part that works in the background, and says how it is."""

    def report(self) -> object:
        """What `/health` tells."""

    def gauges(self) -> Gauges:
        """Its numbers in `/metrics`."""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What a server does by itself."""

    audit: AuditLog
    reporters: Mapping[str, Reporter]
    """By the field of `/health` in which they report."""
    jobs: list[Job]
    """What is started last, and ended first."""

    def gauges(self) -> Gauges:
        """The numbers of all parts."""
        gauges = dict(self.audit.gauges())
        for reporter in self.reporters.values():
            gauges |= reporter.gauges()
        return gauges


def build_upkeep(backend: Backend, folder: DataFolder, bounds: Bounds) -> Upkeep:
    """What the settings want to be done in the background."""
    settings = backend.settings
    audit = AuditLog(settings, folder.audit, bounds.audit)
    reporters: dict[str, Reporter] = {}
    jobs: list[Job] = []
    if (scrub := _scrub(backend, folder, bounds)) is not None:
        reporters["scrub"] = scrub
    if backend.quotas is not None:
        reporters["quotas"] = backend.quotas
    if settings.backup_to:
        reporters["backup"] = backups = ScheduledBackups(settings, bounds.backup)
        jobs.append(backups.job)
    if settings.backup_to and settings.backup_check_every:
        reporters["backup_check"] = checks = ScheduledChecks(settings, bounds.backup)
        jobs.append(checks.job)
    if settings.retention and settings.retention_every:
        reporters["retention"] = retention = ScheduledRetention(
            settings, backend.events, backend.documents, backend.file_deletions, audit.add, bounds.retention
        )
        jobs.append(retention.job)
    if scrub is not None:
        jobs.append(scrub)
    return Upkeep(audit, reporters, jobs)


def _scrub(backend: Backend, folder: DataFolder, bounds: Bounds) -> Scrub | None:
    """Reads the events again and again to find damage; None if nobody wants that, or the engine does it itself."""
    settings, counters = backend.settings, backend.counters
    step = event_engine(settings).scrub(folder) if settings.scrub_days else None
    if step is None:
        return None
    path = folder.root / "scrub.json"
    return Scrub(step, path, days=settings.scrub_days, requests=lambda: counters.answered, bounds=bounds.scrub)
