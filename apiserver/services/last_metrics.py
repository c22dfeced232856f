"""Keeps the owners' documents up to date with their events: one update an owner, coalesced under load.

A batch is stored inside `adding`, which remembers what it touches; a background task writes that out after
`INTERVAL` seconds. Readers of documents `settle` those they ask for first, and so see every acknowledged event; all
others stay coalesced. An owner's document is written, or reset, by one task at a time, who holds the owner's lock. What
a crash loses here is made again from the event store when the server starts (`restate`): the store is told that an
owner is up to date only when nothing of it is pending, being added or being written.

Where several servers share the stores, each writes what it was sent, and what a server left that died is written by
the others. A document has a revision: stats are written only if nobody wrote others since they were read.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from uuid import uuid4
from weakref import WeakValueDictionary

from apiserver.events.last_metrics import Touched, run_time, touched_by, update_of
from apiserver.events.model import SAMPLE_TYPES, EventBatch, EventType, MetricSelection, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.off_loop import off_loop
from apiserver.repeating import Repeating
from apiserver.stores.documents.base import DocumentStore, DocumentStoreError, InvalidDocument
from apiserver.stores.events.base import EventStore, EventStoreBusy, EventStoreError
from apiserver.times import utc_now

log = logging.getLogger(__name__)

#: Seconds that updates are gathered before the background task writes them; while writes fail, up to the second one.
INTERVAL = 0.5
LONGEST_INTERVAL = 30.0
#: Seconds between looks for what other servers left.
RESTATE_INTERVAL = 60.0

#: The background task rests so many times as long as it worked.
_REST = 4

#: Owners that are written at the same time, where that takes less time than one after another.
_AT_ONCE = 16

#: Series that are written to a document at once; of more, one part after the other, so that others have their turn.
_PART = 2000

#: The field of an owner's document that is another whenever its summary of events was written, or reset.
REVISION = "events_revision"
#: The field that is another whenever its events were deleted.
RESET = "events_reset"
#: The field that says that series of the document have labels.
LABELLED = "has_x_axis_labels"
#: What has to be known of a document to write it; models have no status.
_READ = (REVISION, RESET, LABELLED, "status", "started")


def new_revision() -> str:
    """A value of REVISION or RESET that no document has had."""
    return uuid4().hex


class LastMetrics:
    """Coalesces the document updates that batches of events ask for."""

    def __init__(self, events: EventStore, documents: DocumentStore) -> None:
        self._events = events
        self._documents = documents
        self._pending: dict[Owner, Touched] = {}
        self._adding: dict[Owner, int] = {}
        self._left: set[Owner] = set()
        """Owners whose documents are still to be made anew."""
        self._locks: WeakValueDictionary[Owner, asyncio.Lock] = WeakValueDictionary()
        self._task: asyncio.Task[None] | None = None
        self.restating = Repeating(
            "what other servers left", self.restate, RESTATE_INTERVAL, expected=(EventStoreError, DocumentStoreError)
        )

    @contextmanager
    def adding(self, batch: EventBatch, resets: Mapping[Owner, str | None] | None = None) -> Iterator[None]:
        """Store the batch inside: then what it touches is remembered, unless the store is sure that it kept nothing.

        `resets`: what owners' documents said of RESET not long before. What came before a reset is then not told of.
        """
        touched = touched_by(batch)
        for owner, what in touched.items():
            self._adding[owner] = self._adding.get(owner, 0) + 1
            if resets and owner in resets:
                what.resets.add(resets[owner])
        kept = True
        try:
            yield
        except EventStoreBusy as busy:
            kept = busy.may_be_kept
            raise
        finally:
            for owner, what in touched.items():
                self._adding[owner] -= 1
                if not self._adding[owner]:
                    del self._adding[owner]
                if kept:
                    self._touch(owner, what)

    async def settle(self, company: str, *, models: bool = False, ids: Collection[str] | None = None) -> None:
        """Return when the documents show every batch stored so far: the company's tasks or models, all or these.

        Those that cannot be written stay pending.
        """
        if ids is None:
            known = {*self._pending, *self._locks}
            owners = sorted(owner for owner in known if owner.company == company and owner.is_model == models)
        else:
            named = (Owner(company, id, models) for id in ids)
            owners = [owner for owner in named if owner in self._pending or owner in self._locks]
        await self._write_each(owners)

    async def settle_labels(self, owner: Owner) -> None:
        """Return when the owner's document shows every x-axis label stored so far."""
        pending = self._pending.get(owner)
        if owner in self._locks or (pending is not None and pending.labels):
            await self._write_pending(owner)

    async def restate(self) -> None:
        """Make the documents of owners anew whose events came before a crash, be it another server's.

        Owners without a document keep their events: it may be the documents that were lost.
        """
        self._left = {owner async for owner in self._events.owners_to_restate()}
        for owner in sorted(self._left):
            async with self._lock(owner):
                if await self._try_to_write(owner, None):
                    self._left.discard(owner)
                    await self._state(owner)

    @asynccontextmanager
    async def rewriting(self, owners: Sequence[Owner]) -> AsyncIterator[None]:
        """Reset owners inside: their documents are not written meanwhile, and made anew from what is stored then."""
        async with AsyncExitStack() as held:
            for owner in sorted(set(owners)):
                await held.enter_async_context(self._lock(owner))
            try:
                yield
            finally:
                for owner in owners:
                    self._pending.pop(owner, None)  # it may tell of events that are gone; what is stored tells the rest
                    self._touch(owner, await self._everything_of(owner))

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
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._write_until_idle(), name="last-metrics")

    async def _write_until_idle(self) -> None:
        pause = INTERVAL
        while self._pending:
            await asyncio.sleep(pause)
            begun = time.monotonic()
            if await self._write_all():
                pause = min(max(INTERVAL, _REST * (time.monotonic() - begun)), LONGEST_INTERVAL)
            else:
                pause = min(pause * 2, LONGEST_INTERVAL)

    async def _write_all(self) -> bool:
        """Write every pending owner; whether all could be. One that cannot be stays pending, and hinders no other."""
        return all(await self._write_each(list(self._pending)))

    async def _write_each(self, owners: Collection[Owner]) -> list[bool]:
        """Write what is pending of each owner, several at once where it is the engines that take time; what worked."""
        turns = asyncio.Semaphore(_AT_ONCE if self._events.reads_in_parallel else 1)

        async def write(owner: Owner) -> bool:
            async with turns:
                return await self._write_pending(owner)

        return await asyncio.gather(*map(write, owners))

    async def _write_pending(self, owner: Owner) -> bool:
        """Write what is pending of the owner; whether that worked."""
        if owner not in self._pending and owner not in self._locks:
            return True
        async with self._lock(owner):
            touched = self._pending.pop(owner, None)
            if touched is None:
                return True
            written = False
            try:
                written = await self._try_to_write(owner, touched, sweep=True)
            finally:
                if not written:
                    self._touch(owner, touched)
            await self._state(owner)
        return written

    async def _state(self, owner: Owner) -> None:
        """Say that the owner's document, just written, is up to date, unless events came meanwhile or were left."""
        if owner not in self._pending and owner not in self._adding and owner not in self._left:
            try:
                await self._events.restated([owner])
            except EventStoreError as error:  # then the document is made anew once more, later
                log.warning("that the document of %s is written cannot be noted: %s", owner.id, error)

    def _lock(self, owner: Owner) -> asyncio.Lock:
        """Of the owner; it is there as long as somebody holds it or waits for it."""
        return self._locks.setdefault(owner, asyncio.Lock())

    async def _try_to_write(self, owner: Owner, touched: Touched | None, *, sweep: bool = False) -> bool:
        """Write what was touched, or (None) everything; whether that worked."""
        try:
            if not await self._write(owner, touched or await self._everything_of(owner)) and sweep:
                # It was deleted while these events were on their way: nobody could reach or delete them any more.
                await self._events.delete([owner])
        except InvalidDocument as error:  # it grew beyond what the engine keeps: trying again would go on for ever
            log.error("the document of %s stays as it is: %s", owner.id, error)
            return True
        except (EventStoreError, DocumentStoreError) as error:
            log.warning("the document of %s waits: %s", owner.id, error)
        except Exception:
            log.exception("the document of %s cannot be brought up to date", owner.id)
        else:
            return True
        return False

    async def _write(self, owner: Owner, touched: Touched) -> bool:
        """Write the owner's document; whether it has one."""
        collection = "models" if owner.is_model else "tasks"
        found = {"id": owner.id, "company": owner.company}
        parts = await _parts(touched)
        while document := await self._documents.find_one(collection, found, projection=_READ):
            if touched.resets - {document.get(RESET)}:
                touched = await self._everything_of(owner, touched.labels)
                parts = await _parts(touched)
            part = parts[-1]
            selection = _selection(part.series)
            series = SeriesQuery(owner, EventType.SCALAR, selection)
            stats = await self._events.scalar_stats(series) if selection else []
            now = utc_now()
            update = update_of(part, stats, now, labelled=bool(document.get(LABELLED)))
            update["$set"] |= {REVISION: new_revision(), **run_time(document, now)}
            as_read = {**found, REVISION: document.get(REVISION), "status": document.get("status")}
            if await self._documents.update(collection, as_read, update):
                parts.pop()
                if not parts:
                    return True
        return False

    async def _everything_of(self, owner: Owner, labels: Mapping[tuple[str, str], str] | None = None) -> Touched:
        """All that is stored, with those of the labels whose series are."""
        touched = Touched()
        for stats in await self._events.scalar_stats(SeriesQuery(owner, EventType.SCALAR)):
            touched.series.add((stats.metric, stats.variant))
        for type in SAMPLE_TYPES:
            for series in await self._events.sample_series(SeriesQuery(owner, type)):
                touched.saw_sample(series.metric, series.variant, type, series.max_iter, series.max_timestamp)
        touched.labels = {name: label for name, label in (labels or {}).items() if name in touched.series}
        return touched


async def _parts(touched: Touched) -> list[Touched]:
    return await off_loop(len(touched.series) + len(touched.samples), lambda: touched.parts(_PART))


def _selection(series: Iterable[tuple[str, str]]) -> list[MetricSelection]:
    variants: dict[str, list[str]] = {}
    for metric, variant in sorted(series):
        variants.setdefault(metric, []).append(variant)
    return [MetricSelection(metric, tuple(names)) for metric, names in variants.items()]
