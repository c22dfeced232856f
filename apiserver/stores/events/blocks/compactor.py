"""Compacts owners in the background, so that few blocks of a series lie beside its chunks.

Two rules say which owners are due:

- Owners that this server writes to: after some writes, or if there was none for a while, so that the rest of a run is
  compacted, too. Each write makes few fragments of a series, hardly ever more than one.
- Owners that others left behind: now and then the store is asked for owners with many fragments of one series, and more
  rarely for those with a few. If nobody has written more fragments of these since the store was asked before, they are
  due. So the fragments of a server that died are found, by whichever server asks first.

One owner is compacted at a time. Then the compactor rests for longer than it worked, so that writers and readers get
their share, and for a second at least. While it works and rests, more fragments come, and the next compaction takes
them together: most of what it costs is the same for 20 fragments and for 160. Owners that wait for their turn get more
fragments anyway, so the second is divided among them. If the store is busy, the compactor waits as long as the store
says.

Fragments of an owner do not pile up for ever. Each server counts its own writes to an owner since it was compacted. If
these are `hurry` or more, the compactor ends its rest, and begins none. If they are more than `most`, further writes
wait until the owner has been compacted: first of all. If that takes too long, their clients are told to try again
later. So a server never leaves more than `most` writes, and those that came at once, for readers to put together. An
example, with `fewest` 16, `hurry` 160 and `most` 320:

    16 writes    the owner is due, and compacted unless the compactor rests
    160 writes   the compactor does not rest any more
    320 writes   the next one waits for the end of the compaction that is under way
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeVar

from apiserver.events.model import EventType, Owner
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.blocks.bounds import BOUNDS, ColumnarBounds

log = logging.getLogger(__name__)

T = TypeVar("T")


class _Due(NamedTuple):
    type: EventType
    owner: Owner


@dataclass(slots=True)
class _Written:
    """How often this server wrote to an owner since it was compacted, and when it did last."""

    times: int = 0
    last: float = 0.0


class Compact(Protocol):
    """Compacts those series of an owner that have so many loose blocks. Returns whether it was done.

    If not, another server does it just now.
    """

    def __call__(self, owner: Owner, *, fewest: int) -> Awaitable[bool]: ...


class Compacts(NamedTuple):
    """What can be done about the blocks of events of one type."""

    compact: Compact
    crowded: Callable[[int], Awaitable[Mapping[Owner, int]]]
    """Owners that have a series with so many fragments, and the place of the newest of these."""


class Compactor:
    """The compactor of one server."""

    def __init__(self, types: Mapping[EventType, Compacts], bounds: ColumnarBounds = BOUNDS) -> None:
        self.types = types
        self.bounds = bounds
        self._looked = self._swept = time.monotonic()
        self._seen: dict[_Due, int] = {}
        """The owners with a few fragments that the last sweep found, with the places of their newest ones."""
        self._written: OrderedDict[_Due, _Written] = OrderedDict()
        """In the order of their last writes."""
        self._due: dict[_Due, int] = {}
        """The fewest blocks of a series that are compacted, of each owner that is due, in their order."""
        self._compacted: _Due | None = None
        """What is just being compacted."""
        self._is_due = asyncio.Event()
        self._has_to_hurry = asyncio.Event()
        """An owner has so many writes that the compactor may not rest."""
        self._has_compacted = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to compact."""
        self._task = asyncio.create_task(self._run(), name="compacting")

    async def close(self) -> None:
        """Stop; a compaction that is under way stops where it is."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    @property
    def waiting(self) -> int:
        """How many owners are compacted now, or will be without another write."""
        later = {due for due, known in self._written.items() if known.times >= self.bounds.few}
        return len({*self._due, *later, self._compacted} - {None})

    async def until_there_is_room(self, type: EventType, owners: Iterable[Owner]) -> None:
        """Wait while more than `most` writes to one of the owners are not compacted.

        EventStoreBusy: that takes too long. Whoever writes asks this before, and tells `wrote` afterwards.
        """
        for owner in owners:
            due = _Due(type, owner)
            if not self._is_full(due):
                continue
            if due != self._compacted:
                self._due = {due: self.bounds.fewest, **self._due}
                self._is_due.set()
            try:
                async with asyncio.timeout(self.bounds.patience), self._has_compacted:
                    await self._has_compacted.wait_for(lambda due=due: not self._is_full(due))  # type: ignore[misc]
            except TimeoutError:
                raise EventStoreBusy(
                    f"too many batches of {owner.id} wait for compaction",
                    retry_after=self.bounds.again,
                    overloaded=True,
                ) from None

    def _is_full(self, due: _Due) -> bool:
        return self._writes(due) >= self.bounds.most

    def _writes(self, due: _Due) -> int:
        """How often this server wrote to an owner since it was compacted."""
        known = self._written.get(due)
        return 0 if known is None else known.times

    def wrote(self, type: EventType, owners: Iterable[Owner]) -> None:
        """Note that this server wrote blocks of these owners."""
        now = time.monotonic()
        for owner in owners:
            due = _Due(type, owner)
            written = self._written.setdefault(due, _Written())
            self._written.move_to_end(due)
            written.times, written.last = written.times + 1, now
            if written.times >= self.bounds.fewest and due != self._compacted:
                self._add(due, self.bounds.fewest)
            if written.times >= self.bounds.hurry:
                self._has_to_hurry.set()

    def deleted(self, type: EventType, owners: Iterable[Owner]) -> None:
        """Note that blocks of these owners count no more: a compaction under way may still put some of them."""
        for owner in owners:
            due = _Due(type, owner)
            self._written[due] = _Written(self.bounds.few, time.monotonic())
            self._written.move_to_end(due)

    def _add(self, due: _Due, fewest: int) -> None:
        self._due.setdefault(due, fewest)
        self._is_due.set()

    async def _run(self) -> None:
        while True:
            self._add_quiet()
            await self._try("looking for fragments that others left", self._add_left())
            if self._due:
                self._compacted = due = next(iter(self._due))
                await self._compact(due, self._due.pop(due))
                continue
            self._is_due.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(self.bounds.quiet, self.bounds.look, self.bounds.sweep) / 4):
                    await self._is_due.wait()

    def _add_quiet(self) -> None:
        """Owners that were not written to for a while."""
        before = time.monotonic() - self.bounds.quiet
        while self._written and next(iter(self._written.values())).last <= before:
            due, known = self._written.popitem(last=False)
            if known.times >= self.bounds.few:
                self._add(due, self.bounds.few)

    async def _add_left(self) -> None:
        """Owners with many fragments, and those with a few that stay as they are, whoever wrote them."""
        now = time.monotonic()
        if now - self._looked >= self.bounds.look:
            self._looked = now
            for due in await self._crowded(self.bounds.left):
                self._add(due, self.bounds.fewest)
        if now - self._swept >= self.bounds.sweep:
            self._swept = now
            before, self._seen = self._seen, await self._crowded(self.bounds.few)
            for due, newest in self._seen.items():
                if before.get(due) == newest:
                    self._add(due, self.bounds.few)

    async def _crowded(self, fragments: int) -> dict[_Due, int]:
        return {
            _Due(type, owner): newest
            for type, one in self.types.items()
            for owner, newest in (await one.crowded(fragments)).items()
        }

    async def _compact(self, due: _Due, fewest: int) -> None:
        written = self._written.get(due, _Written())
        times, began = written.times, time.monotonic()
        compacted = await self._try("compacting", self.types[due.type].compact(due.owner, fewest=fewest))
        worked = time.monotonic() - began
        if compacted is not False:  # if it failed, it will fail again: then readers have to put up with more fragments
            written.times -= times
            async with self._has_compacted:
                self._has_compacted.notify_all()
        self._compacted = None
        if written.times >= self.bounds.fewest:
            self._add(due, self.bounds.fewest)
        if compacted is False:
            await asyncio.sleep(self.bounds.pause)
        else:
            await self.rest(max(worked * self.bounds.rest, self.bounds.least_rest / max(len(self._due), 1)))

    async def rest(self, seconds: float) -> None:
        """Let others work, but not while an owner that is due has many writes."""
        self._has_to_hurry.clear()
        if not any(self._writes(due) >= self.bounds.hurry for due in self._due):
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._has_to_hurry.wait()

    async def _try(self, what: str, work: Awaitable[T]) -> T | Literal[False] | None:
        """Do it. False: the store is busy, and some time has passed. None: it failed, and will fail again."""
        try:
            return await work
        except EventStoreBusy as busy:
            log.info("%s waits: %s", what, busy)
            await asyncio.sleep(busy.retry_after)
            return False
        except Exception:
            log.exception("%s failed", what)
            return None
