"""Takes a turn, deletes what the settings do not keep, and adds that up. An archive is written first, if there is one.

A server rests as long as it works, so that other calls are answered.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

from apiserver.common.times import iso_millis, now_ms
from apiserver.fileserver.deletions import FileDeletions
from apiserver.operating.audit.entries import Entry
from apiserver.operating.retention import turns
from apiserver.operating.retention.archive import Archive
from apiserver.operating.retention.bounds import RetentionBounds
from apiserver.operating.retention.checks import check_archive
from apiserver.operating.retention.run import Gone, RetentionError, Run
from apiserver.settings.settings import Settings
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.events.base import EventStore

#: Seconds.
_SHORTEST_REST, _LONGEST_REST = 0.05, 5.0


class Amounts:
    """The deleted events, by company and project."""

    def __init__(self) -> None:
        self._events: dict[tuple[str, str], Counter[str]] = {}
        self._tasks: dict[tuple[str, str], set[str]] = {}

    def add(self, gone: Gone) -> None:
        """Add events of a task and type."""
        place = (gone.company, gone.project)
        self._events.setdefault(place, Counter())[gone.type.plural] += gone.events
        self._tasks.setdefault(place, set()).add(gone.task)

    @property
    def events(self) -> int:
        """How many events were deleted."""
        return sum(of.total() for of in self._events.values())

    @property
    def tasks(self) -> int:
        """Of how many tasks."""
        return sum(map(len, self._tasks.values()))

    def entries(self) -> list[Entry]:
        """Lines of the audit log: one for each project of which something was deleted."""
        return [
            Entry("retention.delete", company=company, what={"project": project, "tasks": len(tasks), **events})
            for ((company, project), events), tasks in zip(self._events.items(), self._tasks.values(), strict=True)
        ]


async def delete(
    settings: Settings,
    events: EventStore,
    documents: DocumentStore,
    files: FileDeletions,
    tell: Callable[[Gone], None],
    *,
    gently: bool,
    bounds: RetentionBounds | None = None,
) -> list[str]:
    """Delete what the settings do not keep, and `tell` of all that is deleted; returns what could not be.

    Taken if somebody does so already. RetentionError if it is given up.
    """
    now = now_ms()
    run, amounts, archive = Run(events, documents, settings.retention, now=now, bounds=bounds), Amounts(), None
    if settings.retention_archive:
        await asyncio.to_thread(check_archive, settings)
        archive = Archive(Path(settings.retention_archive), re.sub("[-:]", "", iso_millis(now)))
    async with turns.turn(documents, bounds) as turn:
        begun = time.monotonic()

        async def before_each() -> None:
            nonlocal begun
            if not turn.is_held():
                raise RetentionError("somebody else deletes now")
            worked = time.monotonic() - begun
            if gently and worked > _SHORTEST_REST:
                await asyncio.sleep(min(worked, _LONGEST_REST))
                begun = time.monotonic()

        async with aclosing(run.delete(archive, files, before_each)) as deleted:
            async for gone in deleted:
                amounts.add(gone)
                tell(gone)
        await turns.note(documents, events=amounts.events, tasks=amounts.tasks, failures=len(run.failures))
    return run.failures
