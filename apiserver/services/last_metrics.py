"""Keeps the owners' documents up to date with their events: one update an owner, coalesced under load.

`note` only remembers what a batch touched; a background task writes it out, at most every `INTERVAL` seconds. Readers
of documents call `settle` first and so see every acknowledged event. What a crash loses here is made again from the
event store when the server starts (`restate`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from apiserver.events.last_metrics import Touched, touched_by, update_of
from apiserver.events.model import SAMPLE_TYPES, EventBatch, MetricSelection, Owner
from apiserver.stores.documents.base import DocumentStore, DocumentStoreBusy
from apiserver.stores.events.base import EventStore, EventStoreBusy
from apiserver.times import utc_now

log = logging.getLogger(__name__)

#: Seconds between two writes of the background task.
INTERVAL = 0.5


class LastMetrics:
    """Coalesces the document updates that batches of events ask for."""

    def __init__(self, events: EventStore, documents: DocumentStore) -> None:
        self._events = events
        self._documents = documents
        self._pending: dict[Owner, Touched] = {}
        self._writing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def note(self, batch: EventBatch) -> None:
        """Remember what an acknowledged batch touched; returns at once."""
        for owner, touched in touched_by(batch).items():
            self._touch(owner, touched)
        if self._pending and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._write_until_idle(), name="last-metrics")

    def forget(self, owners: Sequence[Owner]) -> None:
        """Drop what is pending for owners whose events were deleted or reset."""
        for owner in owners:
            self._pending.pop(owner, None)

    async def settle(self) -> None:
        """Return when the documents show every batch noted so far."""
        if self._pending or self._writing.locked():
            await self._write_all()

    async def restate(self) -> None:
        """Make the documents of owners with events from before a crash anew."""
        async for owner in self._events.owners_to_restate():
            self._touch(owner, await self._everything_of(owner))
        await self._write_all()

    async def close(self) -> None:
        """Write what is pending."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._write_all()

    def _touch(self, owner: Owner, touched: Touched) -> None:
        if known := self._pending.get(owner):
            known.merge(touched)
        else:
            self._pending[owner] = touched

    async def _write_until_idle(self) -> None:
        while self._pending:
            try:
                await self._write_all()
            except (EventStoreBusy, DocumentStoreBusy) as error:
                log.warning("last metrics wait: %s", error)
            await asyncio.sleep(INTERVAL)

    async def _write_all(self) -> None:
        async with self._writing:
            pending, self._pending = self._pending, {}
            try:
                while pending:
                    owner = next(iter(pending))
                    await self._write(owner, pending[owner])
                    del pending[owner]
            finally:
                for owner, touched in pending.items():
                    self._touch(owner, touched)
        await self._events.restated()

    async def _write(self, owner: Owner, touched: Touched) -> None:
        variants: dict[str, list[str]] = {}
        for metric, variant in sorted(touched.series):
            variants.setdefault(metric, []).append(variant)
        selection = [MetricSelection(metric, tuple(names)) for metric, names in variants.items()]
        stats = await self._events.scalar_stats([owner], selection) if selection else []
        collection = "models" if owner.is_model else "tasks"
        update = update_of(touched, stats, utc_now())
        await self._documents.update(collection, {"id": owner.id, "company": owner.company}, update)

    async def _everything_of(self, owner: Owner) -> Touched:
        touched = Touched()
        for stats in await self._events.scalar_stats([owner]):
            touched.series.add((stats.metric, stats.variant))
            touched.saw_iteration(stats.max_iter)
        for type in SAMPLE_TYPES:
            for series in await self._events.sample_series(owner, type):
                touched.saw_iteration(series.max_iter)
                key = (series.metric, type)
                touched.samples[key] = max(series.max_timestamp, touched.samples.get(key, series.max_timestamp))
        return touched
