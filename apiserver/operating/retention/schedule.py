"""Retention that a server does by itself, as the settings `retention` and `retention_every` say, and what it tells.

Of several servers on the same documents, one does it. All know when that was last done, and tell it.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from apiserver.common.gauges import Gauges
from apiserver.common.repeating import Repeating
from apiserver.common.times import epoch_millis
from apiserver.fileserver.deletions import FileDeletions
from apiserver.operating.audit.entries import Entry
from apiserver.operating.retention import turns
from apiserver.operating.retention.bounds import RetentionBounds
from apiserver.operating.retention.deleting import Amounts, delete
from apiserver.operating.retention.run import RetentionError
from apiserver.operating.retention.turns import Taken
from apiserver.settings.settings import Settings
from apiserver.stores.documents.base import DocumentStore, DocumentStoreError
from apiserver.stores.documents.query import Document
from apiserver.stores.events.base import EventStore, EventStoreError

#: Seconds until a run that failed is tried again.
RETRY = 600.0

log = logging.getLogger(__name__)


class ScheduledRetention:
    """Deletes whenever the last time is `retention_every` hours ago, also over restarts."""

    def __init__(
        self,
        settings: Settings,
        events: EventStore,
        documents: DocumentStore,
        files: FileDeletions,
        audit: Callable[[Entry], None],
        bounds: RetentionBounds | None = None,
        *,
        clock: Callable[[], float] = time.time,
        running: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` says how late it is, which somebody may set, and `running` how long something takes."""
        self._bounds = bounds = bounds or RetentionBounds()
        self._clock, self._running = clock, running
        self._settings = settings
        self._every = settings.retention_every * bounds.hour_seconds
        self._stores = events, documents
        self._files = files
        self._audit = audit
        self._begun = clock()
        self._next_try = -math.inf
        """When (monotonic) it may be tried again after a failure, whatever the clock says meanwhile."""
        self._failed = -math.inf
        self._last: Document = {}
        self.job = Repeating(
            "retention", self.look, bounds.look_seconds, expected=(EventStoreError, DocumentStoreError, RetentionError)
        )

    @property
    def ended(self) -> float:
        """When the last run ended, in seconds since 1970; 0: never, or somebody's clock was wrong then."""
        ended = (epoch_millis(self._last.get("ended")) or 0) / 1000
        return ended if ended < self._clock() + turns.AHEAD else 0

    @property
    def events(self) -> int:
        """How many events the last run deleted."""
        return int(self._last.get("events", 0))

    @property
    def state(self) -> str:
        """For people: "ok", "failed", or "late": the last run was twice `retention_every` ago."""
        if self._failed > self.ended or self._last.get("failures"):
            return "failed"
        is_late = self._clock() - (self.ended or self._begun) > 2 * self._every
        return "late" if is_late else "ok"

    def report(self) -> dict[str, str | int | None]:
        """The fields of `/health`."""
        return {"state": self.state, "ended": self._last.get("ended"), "events": self.events}

    def gauges(self) -> Gauges:
        """Its numbers in `/metrics`."""
        return {
            "retention_ended_seconds": ("When retention last deleted.", lambda: self.ended),
            "retention_events": ("How many events it deleted then.", lambda: self.events),
            "retention_well": ("0 if it failed or is late.", lambda: float(self.state == "ok")),
        }

    async def look(self) -> None:
        """See when it was last done, and delete if that is due."""
        events, documents = self._stores
        self._last = await turns.last(documents)
        is_due = self._clock() - self.ended >= self._every
        if not is_due or self._running() < self._next_try:
            return
        amounts = Amounts()
        try:
            failures = await delete(
                self._settings, events, documents, self._files, amounts.add, gently=True, bounds=self._bounds
            )
            log.info("retention deleted %d events of %d tasks", amounts.events, amounts.tasks)
            for failure in failures:
                log.warning("retention could not delete %s", failure)
        except Taken:
            return
        except Exception:
            self._failed, self._next_try = self._clock(), self._running() + RETRY
            raise
        finally:
            for entry in amounts.entries():
                self._audit(entry)
        self._failed = -math.inf
        self._last = await turns.last(documents)
