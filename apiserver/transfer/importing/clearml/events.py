"""Imports events: type by type, index by index, tasks and models in the order of their ids.

For each task or model and type, a mark says how many events the source has, and when the newest was written. If the
mark is still that of an earlier run, the events are skipped. Otherwise all of them are sent. Events that are there
already do not change: a point or sample replaces itself, and log lines are compared first. A mark is set once the
target holds as many events as the source.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import orjson

from apiserver.common.sizes import counted
from apiserver.events.event_types import ADDRESSES
from apiserver.events.ingest import Ingest
from apiserver.events.model import EventType, Owner
from apiserver.events.queries import SeriesQuery
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.query import In
from apiserver.stores.events.base import EventStore
from apiserver.transfer.copying.retrying import patiently
from apiserver.transfer.importing.clearml.bodies import batch_of
from apiserver.transfer.importing.clearml.elasticsearch import StoredEvent, Tally
from apiserver.transfer.importing.clearml.lines import LinesThere
from apiserver.transfer.importing.clearml.marks import ImportMarks, mark
from apiserver.transfer.importing.clearml.urls import Replacements
from apiserver.transfer.importing.report import Progress, Report, SourceRefused

#: Tasks and models with few events are read together, up to this many events.
_TOGETHER = 5000
#: Counts are compared, and marks set, after this many events: an interrupted run sends no more than these again.
_CHECKED = 1_000_000

Item = TypeVar("Item")


class SourceEvents(Protocol):
    """The events of a ClearML server."""

    async def indices(self, type: EventType) -> list[str]:
        """The indices with events of a type."""

    async def total(self, index: str) -> int:
        """How many events an index has; 0 if that is not known."""

    def tallies(self, index: str) -> AsyncIterator[list[Tally]]:
        """Pages of the tallies of all tasks and models in an index."""

    def pages(
        self, index: str, type: EventType, ids: Collection[str], count: int
    ) -> AsyncIterator[Sequence[StoredEvent]]:
        """Pages of all events of some tasks or models, about `count`; log lines by time."""


@dataclass(frozen=True, slots=True)
class _Due:
    """All events of one owner and type, which are to be imported; `mark` is stored under `name` afterwards."""

    owner: Owner
    tally: Tally
    name: str
    mark: str


@dataclass(slots=True)
class EventImport:
    """Imports all events whose tasks and models the target has."""

    source: SourceEvents
    target: EventStore
    documents: DocumentStore
    marks: ImportMarks
    report: Report
    urls: Replacements
    _refused: Counter[str] = field(default_factory=Counter, init=False)
    """How many events could not be imported, by the id of the task or model."""

    async def run(self) -> None:
        """Import the events, and compare counts."""
        for type in EventType:
            for index in await self.source.indices(type):
                await self._take_index(index, type)

    async def _take_index(self, index: str, type: EventType) -> None:
        progress = Progress(type.value, await self.source.total(index), self.report.say)
        homeless = 0
        async for tallies in self.source.tallies(index):
            owners = await self._owners(tallies)
            with_owner = [tally for tally in tallies if tally.id in owners]
            homeless += len(tallies) - len(with_owner)
            due = await self._due(index, type, with_owner, owners)
            progress.advance(sum(tally.events for tally in tallies) - _events_of(due))
            taken: list[_Due] = []
            for group in _groups(due):
                taken += await self._take_group(index, type, group)
                progress.advance(_events_of(group))
                if _events_of(taken) >= _CHECKED:
                    await self._check(type, taken)
                    taken = []
            await self._check(type, taken)
        if homeless:
            self.report.note(
                f"{index} has events of {counted(homeless, 'unknown tasks or models')}: they are not imported"
            )

    async def _owners(self, tallies: Sequence[Tally]) -> dict[str, Owner]:
        """The owners whose documents the target has, by id."""
        owners: dict[str, Owner] = {}
        for collection, is_model in (("models", True), ("tasks", False)):
            ids = {"id": In([tally.id for tally in tallies])}
            documents = await patiently(self.report.say, self.documents.find, collection, ids, projection=("company",))
            owners |= {document["id"]: Owner(document["company"], document["id"], is_model) for document in documents}
        return owners

    async def _due(self, index: str, type: EventType, tallies: Sequence[Tally], owners: dict[str, Owner]) -> list[_Due]:
        """The owners whose events are new, or have changed since the last run."""
        moved = self.urls.pairs if type in ADDRESSES else ()
        marks = {f"{index}/{tally.id}": mark(tally.events, tally.newest, moved) for tally in tallies}
        marks_before = await self.marks.of(marks)
        count = self.report.count(type.value)
        due = []
        for tally, (name, new_mark) in zip(tallies, marks.items(), strict=True):
            count.found += tally.events
            if marks_before.get(name) == new_mark:
                count.known += tally.events
            else:
                due.append(_Due(owners[tally.id], tally, name, new_mark))
        return due

    # --- taking ------------------------------------------------------------------------------------

    async def _take_group(self, index: str, type: EventType, group: Sequence[_Due]) -> list[_Due]:
        """Import events of several owners together or, if the source refuses that, of each by itself.

        Returns the owners for which it worked.
        """
        try:
            await self._take(index, type, group)
        except SourceRefused as refused:
            if len(group) > 1:
                return [taken for one in group for taken in await self._take_group(index, type, [one])]
            self.report.problem(type.value, f"of {group[0].tally.id}", str(refused))
            return []
        return list(group)

    async def _take(self, index: str, type: EventType, group: Sequence[_Due]) -> None:
        owners = {due.tally.id: due.owner for due in group}
        there = await self._lines_there(type, owners.values())
        pages = self.source.pages(index, type, owners, _events_of(group))
        async for events in _ahead(pages):
            batch, bad = await asyncio.to_thread(batch_of, events, type, set(owners.values()), self.urls)
            for event in events:
                if event.id in bad:
                    self._refuse(type, index, event, bad[event.id])
            await self._add(type, batch, there)

    async def _lines_there(self, type: EventType, owners: Collection[Owner]) -> dict[Owner, LinesThere]:
        """The log lines that the target has already, for each owner that has some."""
        if type is not EventType.LOG:
            return {}
        each = [SeriesQuery(owner, type) for owner in owners]
        counts = await asyncio.gather(*(patiently(self.report.say, self.target.log_count, series) for series in each))
        some = [owner for owner, count in zip(owners, counts, strict=True) if count]
        return {owner: LinesThere(self.target, owner, self.report.say) for owner in some}

    async def _add(self, type: EventType, found: Ingest, there: dict[Owner, LinesThere]) -> None:
        batch = found.batch
        if there:
            missing = [await there[logs.owner].missing(logs) if logs.owner in there else logs for logs in batch.logs]
            batch.logs = [logs for logs in missing if logs is not None]
        if not batch:
            return
        for reason, count in (await patiently(self.report.say, self.target.add, batch)).items():
            self.report.problem(type.value, f"({counted(count, 'events')})", f"the target refuses them: {reason}")

    def _refuse(self, type: EventType, index: str, event: StoredEvent, reason: str) -> None:
        self._refused[str(orjson.loads(event.line).get("task"))] += 1
        self.report.count(type.value).left += 1
        self.report.problem(type.value, f"{event.id} in {index}", reason)

    # --- comparing ---------------------------------------------------------------------------------

    async def _check(self, type: EventType, taken: Sequence[_Due]) -> None:
        """Compare how many events source and target have, and mark the owners whose events are complete."""
        if not taken:
            return
        count, whole = self.report.count(type.value), {}
        why = "" if type is EventType.LOG else "; only one of each series and iteration is kept"
        for due in taken:
            there = await patiently(self.report.say, self.target.events_count, due.owner, [type])
            expected = due.tally.events - self._refused[due.tally.id]
            count.taken += min(there, expected)
            if there < expected:
                self.report.problem(
                    type.value, f"of {due.tally.id}", f"{expected:,} should be there, {there:,} are{why}"
                )
            elif expected == due.tally.events:
                whole[due.name] = due.mark
        self._refused.clear()
        await self.marks.put(whole)


def _events_of(owners: Sequence[_Due]) -> int:
    """How many events the source has of these owners."""
    return sum(owner.tally.events for owner in owners)


def _groups(all_due: Sequence[_Due]) -> Iterator[list[_Due]]:
    """Groups of owners of one company with about `_TOGETHER` events or fewer; an owner with more is alone."""
    group: list[_Due] = []
    for due in all_due:
        events = _events_of(group) + due.tally.events
        if group and (events > _TOGETHER or due.owner.company != group[0].owner.company):
            yield group
            group = []
        group.append(due)
    if group:
        yield group


async def _ahead(items: AsyncIterator[Item]) -> AsyncIterator[Item]:
    """The items; the next one is fetched while the caller works on the one before."""
    asking = asyncio.ensure_future(anext(items, None))
    try:
        while (item := await asking) is not None:
            asking = asyncio.ensure_future(anext(items, None))
            yield item
    finally:
        asking.cancel()
