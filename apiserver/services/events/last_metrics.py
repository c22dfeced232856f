"""Keeps the documents of tasks and models (owners) up to date with their events: last values, iterations, times.

Times also follow pings, with which a client says that a task still runs.

A batch is stored inside `adding`, which notes which series it touches. A background task writes the touched owners'
documents every half second, so many batches cost one update, and many documents one transaction. A reader first
calls `settle` for the documents that it asks for, and so sees every acknowledged event.

One coroutine at a time, which holds the owner's lock, writes or resets an owner's document. After a crash, `restate`
writes the documents again from the event store, which keeps a mark on each owner that got events. The mark is removed
only when nothing of the owner is pending, being added or being written.

If several servers share the stores, each writes the documents for the batches that it got, and takes over the marks of
a server that died. Each document has a revision, and is updated only if it still has the revision that was read.

An example, with two batches for one task:

    batch 1 touches loss/train           pending: {loss/train}
    batch 2 touches loss/train, lr/lr    pending: {loss/train, lr/lr}
    tasks.get_by_id calls settle         reads the statistics of both series, writes the document once
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from uuid import uuid4
from weakref import WeakValueDictionary

from apiserver.common.errors import some_of
from apiserver.common.off_loop import off_loop
from apiserver.common.repeating import Repeating
from apiserver.common.times import utc_now
from apiserver.events.last_metrics import Touched, run_time, touched_by, update_of
from apiserver.events.model import SAMPLE_TYPES, EventBatch, EventType, MetricSelection, Owner, ScalarStats
from apiserver.events.queries import SeriesQuery
from apiserver.stores.documents.base import DocumentStore, DocumentStoreError, InvalidDocument
from apiserver.stores.documents.query import Document, Filter, In, Update
from apiserver.stores.events.base import EventStore, EventStoreBusy, EventStoreError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LastMetricsBounds:
    """How often documents are written, how many at once, and how long others wait for that. Times are in seconds."""

    interval_seconds: float = 0.5
    """Between two rounds of writes."""
    longest_interval_seconds: float = 30
    """While writes fail, the time between two rounds becomes longer, up to this. No round rests for longer either."""
    patience_seconds: float = 20
    """How long a reader waits at most until documents show the newest events, as when an engine does not answer."""
    restate_seconds: float = 60
    """Between two looks for owners whose server died."""
    rest: float = 16
    """After each group of owners, the background task rests so many times as long as the group took. So if thousands of
    tasks report, it writes a document once for several batches and pings, and requests wait for one group at most."""
    at_once: int = 4
    """How many groups of owners are written at once, on engines where that is faster."""
    together: int = 32
    """How many owners are a group, which is read together and written with one transaction, where there are such."""
    few_series: int = 100
    """How many series each owner of a group may have."""
    series_an_update: int = 2000
    """How many series one update of a document has. More take several updates, so that other work goes on between."""


#: The field of an owner's document that gets a new value whenever its statistics are written or reset.
REVISION = "events_revision"
#: The field that changes whenever the owner's events are deleted: just before, or with the reset of the summary.
RESET = "events_reset"
#: The field that says that some series of the document have a label of the x axis.
LABELLED = "has_x_axis_labels"
#: The fields of an owner's document that are written here.
WRITTEN = frozenset(
    {"last_update", "last_change", "last_iteration", "last_metrics", "metric_stats", "active_duration"}
    | {LABELLED, REVISION}
)
#: The fields that are read before a document is written. Models have no status.
_READ = (REVISION, RESET, LABELLED, "status", "started")


def new_revision() -> str:
    """A new, unique value for REVISION or RESET."""
    return uuid4().hex


class LastMetrics:
    """Writes the owners' documents after batches of events, many batches with one update."""

    def __init__(
        self,
        events: EventStore,
        documents: DocumentStore,
        forget: Callable[[Collection[Owner]], None] = lambda owners: None,
        bounds: LastMetricsBounds | None = None,
    ) -> None:
        """`forget` is told whose events were deleted because nobody has them any more."""
        self._events = events
        self._documents = documents
        self._forget = forget
        self._bounds = bounds = bounds or LastMetricsBounds()
        self._pending: dict[Owner, Touched] = {}
        self._adding: dict[Owner, int] = {}
        self._left: set[Owner] = set()
        """Owners that `write_anew` still has to write."""
        self._locks: WeakValueDictionary[Owner, asyncio.Lock] = WeakValueDictionary()
        self._task: asyncio.Task[None] | None = None
        self.restating = Repeating(
            "what other servers left",
            self.restate,
            bounds.restate_seconds,
            expected=(EventStoreError, DocumentStoreError),
            at_once=False,
        )

    @contextmanager
    def adding(self, batch: EventBatch, resets: Mapping[Owner, str | None] | None = None) -> Iterator[None]:
        """The caller stores the batch inside. Then its owners are pending, unless the store surely kept nothing.

        `resets`: the RESET of the owners' documents, read before. If it has changed when the document is written, the
        events may have been deleted meanwhile, and the document is made from what is stored then.
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

    def heard_of(self, owner: Owner) -> None:
        """A client has said that the owner's task still runs. If the server crashes, this may be lost."""
        self._touch(owner, Touched(changed=False))

    async def settle(self, company: str, *, models: bool = False, ids: Collection[str] | None = None) -> None:
        """Return when the documents show every batch stored so far: all the company's tasks or models, or `ids`.

        Documents that cannot be written, or not within `patience_seconds`, stay pending.
        """
        if ids is None:
            known = {*self._pending, *self._locks}
            owners = sorted(owner for owner in known if owner.company == company and owner.is_model == models)
        else:
            named = (Owner(company, id, models) for id in dict.fromkeys(ids))
            owners = [owner for owner in named if owner in self._pending or owner in self._locks]
        await self._within_patience(self._write_each(owners))

    async def settle_labels(self, owner: Owner) -> None:
        """Return when the owner's document has every x-axis label stored so far, or `patience_seconds` is over."""
        pending = self._pending.get(owner)
        if owner in self._locks or (pending is not None and pending.labels):
            await self._within_patience(self._write_pending(owner))

    async def restate(self) -> None:
        """Write the documents of owners that this or another server had not written when it crashed."""
        await self.write_anew({owner async for owner in self._events.owners_to_restate()})

    async def write_anew(self, owners: Collection[Owner]) -> Collection[Owner]:
        """Write the documents of owners from what is stored; returns those whose documents cannot be written.

        Owners without a document keep their events, because the documents may be what was lost.
        """
        self._left = {*owners}
        for owner in sorted(self._left):
            async with self._lock(owner):
                if await self._try_to_write(owner, None):
                    self._left.discard(owner)
                    await self._state([owner])
        return self._left

    @asynccontextmanager
    async def rewriting(self, owners: Sequence[Owner]) -> AsyncIterator[None]:
        """The caller resets the owners inside. Their documents are written afterwards, from what is stored then."""
        async with AsyncExitStack() as held:
            for owner in sorted(set(owners)):
                await held.enter_async_context(self._lock(owner))
            try:
                yield
            finally:
                for owner in owners:
                    self._pending.pop(owner, None)  # it may name events that are deleted now
                    self._touch(owner, await self._everything_of(owner))

    async def close(self) -> None:
        """Write all pending owners."""
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
        bounds = self._bounds
        pause = bounds.interval_seconds
        while self._pending:
            await asyncio.sleep(pause)
            written = await self._write_all(bounds.rest)
            pause = bounds.interval_seconds if written else min(pause * 2, bounds.longest_interval_seconds)

    async def _write_all(self, rest: float = 0) -> bool:
        """Write every pending owner; returns whether all were written. The others stay pending."""
        return all(await self._write_each(list(self._pending), rest))

    async def _write_each(self, owners: Collection[Owner], rest: float = 0) -> list[bool]:
        """Write the pending values of owners, in groups; returns for each group whether all were written.

        After each group, rest so many times as long as it took, but no longer than `longest_interval_seconds` in all.
        """
        kind = attrgetter("company", "is_model")
        kinds = [list(some) for _, some in groupby(sorted(owners, key=kind), kind)]
        together, longest = self._bounds.together, self._bounds.longest_interval_seconds
        groups = [some[start : start + together] for some in kinds for start in range(0, len(some), together)]
        turns = asyncio.Semaphore(self._bounds.at_once if self._events.reads_in_parallel else 1)

        async def write(group: Sequence[Owner]) -> bool:
            async with turns:
                begun = time.monotonic()
                written = await (self._write_group(group) if len(owners) > 1 else self._write_pending(group[0]))
                if rest:
                    await asyncio.sleep(min(rest * (time.monotonic() - begun), longest / len(groups)))
            return written

        return await asyncio.gather(*map(write, groups))

    async def _write_group(self, owners: Sequence[Owner]) -> bool:
        """Write the pending values of some tasks, or models, of a company; returns whether none is left pending."""
        async with AsyncExitStack() as held:
            for owner in sorted(set(owners)):  # a lock that is taken twice would never be free again
                if owner in self._pending or owner in self._locks:
                    await held.enter_async_context(self._lock(owner))
            taken = {owner: self._pending.pop(owner) for owner in owners if owner in self._pending}
            written = set[Owner]()
            try:
                written = await self._written_together(taken)
            except Exception as error:  # one of them is the reason: it is found when each is written by itself
                log.debug("documents are not written together", exc_info=error)
            finally:
                for owner in taken.keys() - written:
                    self._touch(owner, taken[owner])
            await self._state(owner for owner in written if taken[owner].changed)
        return all([await self._write_pending(owner) for owner in taken if owner not in written])

    async def _written_together(self, group: Mapping[Owner, Touched]) -> set[Owner]:
        """Write documents with one read and one transaction; returns those that were written.

        Not written are those that need more than one update, or more than what their events touched.
        """
        few_series = self._bounds.few_series
        few = {owner: touched for owner, touched in group.items() if len(touched.series) <= few_series}
        if not few:
            return set()
        collection, company = "models" if next(iter(few)).is_model else "tasks", next(iter(few)).company
        found: Filter = {"id": In([owner.id for owner in few]), "company": company}
        documents = {one["id"]: one for one in await self._documents.find(collection, found, projection=_READ)}
        ready = [
            (owner, documents[owner.id], touched)
            for owner, touched in few.items()
            if owner.id in documents and not touched.resets - {documents[owner.id].get(RESET)}
        ]
        asked = {owner: _series_of(owner, touched) for owner, _, touched in ready if touched.series}
        stats = dict(zip(asked, await self._events.scalar_stats_of_each(list(asked.values())), strict=True))
        updates = [_update(owner, document, touched, stats.get(owner, ())) for owner, document, touched in ready]
        counts = await self._documents.update_each(collection, updates)
        return {owner for (owner, *_), count in zip(ready, counts, strict=True) if count}

    async def _write_pending(self, owner: Owner) -> bool:
        """Write the pending values of the owner; returns whether none is left pending."""
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
            if touched.changed:
                await self._state([owner])
        return written

    async def _state(self, owners: Iterable[Owner]) -> None:
        """Remove the marks of owners in the event store after their documents were written, unless more events came."""
        done = [owner for owner in owners if not self._has_more(owner)]
        if not done:
            return
        try:
            await self._events.restated(done)
        except EventStoreError as error:  # the mark stays, so the document is written once more later
            ids = some_of([owner.id for owner in done])
            log.warning("the marks of %s, whose documents are written, cannot be removed: %s", ids, error)

    def _has_more(self, owner: Owner) -> bool:
        """Whether there are events of the owner that its document may not show."""
        pending = self._pending.get(owner)
        return (pending is not None and pending.changed) or owner in self._adding or owner in self._left

    def _lock(self, owner: Owner) -> asyncio.Lock:
        """The owner's lock. It exists as long as somebody holds it or waits for it."""
        return self._locks.setdefault(owner, asyncio.Lock())

    async def _try_to_write(self, owner: Owner, touched: Touched | None, *, sweep: bool = False) -> bool:
        """Write what was touched, or everything if that is None; returns False if it must be tried again.

        `sweep`: delete the owner's events if it has no document.
        """
        try:
            if not await self._write(owner, touched or await self._everything_of(owner)) and sweep:
                # The document was deleted while these events arrived. Nobody else could find and delete them.
                await self._events.delete([owner])
                self._forget([owner])
        except InvalidDocument as error:  # it is larger than the engine allows: trying again would never succeed
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
        """Write the owner's document, part by part; returns whether it has one.

        If another server changed the document since it was read, the part is read and written again.
        """
        collection = "models" if owner.is_model else "tasks"
        found = {"id": owner.id, "company": owner.company}
        parts = await self._parts(touched)
        while document := await self._documents.find_one(collection, found, projection=_READ):
            if touched.resets - {document.get(RESET)}:
                touched = await self._everything_of(owner, touched.labels)
                parts = await self._parts(touched)
            part = parts[-1]
            stats = await self._events.scalar_stats(_series_of(owner, part)) if part.series else []
            if await self._documents.update(collection, *_update(owner, document, part, stats)):
                parts.pop()
                if not parts:
                    return True
        return False

    async def _everything_of(self, owner: Owner, labels: Mapping[tuple[str, str], str] | None = None) -> Touched:
        """Every stored series of the owner, and the `labels` of stored series."""
        touched = Touched()
        for stats in await self._events.scalar_stats(SeriesQuery(owner, EventType.SCALAR)):
            touched.series.add((stats.metric, stats.variant))
        for type in SAMPLE_TYPES:
            for series in await self._events.sample_series(SeriesQuery(owner, type)):
                touched.saw_sample(series.metric, series.variant, type, series.max_iter, series.max_timestamp)
        touched.labels = {name: label for name, label in (labels or {}).items() if name in touched.series}
        return touched

    async def _parts(self, touched: Touched) -> list[Touched]:
        most = self._bounds.series_an_update
        return await off_loop(len(touched.series) + len(touched.samples), lambda: touched.parts(most))

    async def _within_patience(self, writing: Awaitable[object]) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._bounds.patience_seconds):
                await writing


def _update(owner: Owner, document: Document, touched: Touched, stats: Iterable[ScalarStats]) -> tuple[Filter, Update]:
    """The update of an owner's document, and a filter that finds it only as it was read."""
    now = utc_now()
    values, reached = update_of(touched, stats, now, labelled=bool(document.get(LABELLED)))
    values |= {REVISION: new_revision(), **run_time(document, now)}
    as_read = {REVISION: document.get(REVISION), "status": document.get("status")}
    return {"id": owner.id, "company": owner.company, **as_read}, Update(set=values, max=reached)


def _series_of(owner: Owner, touched: Touched) -> SeriesQuery:
    variants: dict[str, list[str]] = {}
    for metric, variant in sorted(touched.series):
        variants.setdefault(metric, []).append(variant)
    selection = [MetricSelection(metric, tuple(names)) for metric, names in variants.items()]
    return SeriesQuery(owner, EventType.SCALAR, selection)
