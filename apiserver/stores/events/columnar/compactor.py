"""Compacts owners in the background, so that few blocks of a series lie beside its chunks.

Two rules say which owners are due:

- Owners that this server writes to: after some writes, or if there was none for a while, so that the rest of a run is
  compacted, too. Each write makes one fragment of a series at most.
- Owners that others left behind: now and then the store is asked for owners with many fragments of one series. So those
  of a server that died are found, by whichever server asks first.

One owner is compacted at a time. Then the compactor rests for as long as it worked, so that writers and readers get
their share; while it works and rests, more fragments come, and the next compaction takes them together. If the store is
busy, the compactor waits. Nothing depends on it: without it, reads only take longer.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from apiserver.events.model import EventType, Owner
from apiserver.stores.events.base import EventStoreBusy
from apiserver.stores.events.columnar.compaction import FEWEST

log = logging.getLogger(__name__)

#: Seconds without a write after which an owner is compacted if it was written to twice, and the fewest blocks then.
QUIET = 60.0
FEW = 2
#: Seconds between two looks for owners that others left, and how many fragments of a series these have.
LOOK = 60.0
LEFT = 2 * FEWEST
#: How many times as long as it worked the compactor rests.
REST = 1.0
#: The most writes that are waited for together: then the compactor does not rest.
HURRY = 20 * FEWEST


class _Due(NamedTuple):
    type: EventType
    owner: Owner


@dataclass(slots=True)
class _Written:
    """How often this server wrote to an owner since it was compacted, and when it did last."""

    times: int = 0
    last: float = 0.0


class Compact(Protocol):
    """Compacts those series of an owner that have so many loose blocks."""

    def __call__(self, owner: Owner, *, fewest: int) -> Awaitable[None]: ...


class Compacts(NamedTuple):
    """What can be done about the blocks of events of one type."""

    compact: Compact
    crowded: Callable[[int], Awaitable[Iterable[Owner]]]
    """Owners that have a series with so many fragments."""


class Compactor:
    """The compactor of one server."""

    def __init__(self, types: Mapping[EventType, Compacts], *, quiet: float = QUIET, look: float = LOOK) -> None:
        self._types = types
        self._quiet = quiet
        self._look = look
        self._looked = time.monotonic()
        self._written: OrderedDict[_Due, _Written] = OrderedDict()
        """In the order of their last writes."""
        self._due: dict[_Due, int] = {}
        """The fewest blocks of a series that are compacted, of each owner that is due, in their order."""
        self._compacted: _Due | None = None
        """What is just being compacted."""
        self._is_due = asyncio.Event()
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
        later = {due for due, known in self._written.items() if known.times >= FEW}
        return len({*self._due, *later, self._compacted} - {None})

    def wrote(self, type: EventType, owners: Iterable[Owner]) -> None:
        """Note that this server wrote blocks of these owners."""
        now = time.monotonic()
        for owner in owners:
            due = _Due(type, owner)
            known = self._written.setdefault(due, _Written())
            self._written.move_to_end(due)
            known.times, known.last = known.times + 1, now
            if known.times == FEWEST:
                self._add(due, FEWEST)

    def deleted(self, type: EventType, owners: Iterable[Owner]) -> None:
        """Note that blocks of these owners count no more: a compaction under way may still put some of them."""
        for owner in owners:
            due = _Due(type, owner)
            self._written[due] = _Written(FEW, time.monotonic())
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
                self._compacted = None
                continue
            self._is_due.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(min(self._quiet, self._look) / 4):
                    await self._is_due.wait()

    def _add_quiet(self) -> None:
        """Owners that were not written to for a while."""
        before = time.monotonic() - self._quiet
        while self._written and next(iter(self._written.values())).last <= before:
            due, known = self._written.popitem(last=False)
            if known.times >= FEW:
                self._add(due, FEW)

    async def _add_left(self) -> None:
        """Owners with many fragments, whoever wrote them."""
        if time.monotonic() - self._looked < self._look:
            return
        self._looked = time.monotonic()
        for type, one in self._types.items():
            for owner in await one.crowded(LEFT):
                self._add(_Due(type, owner), FEWEST)

    async def _compact(self, due: _Due, fewest: int) -> None:
        known = self._written.get(due, _Written())
        hurries, known.times = known.times >= HURRY, 0
        began = time.monotonic()
        await self._try("compacting", self._types[due.type].compact(due.owner, fewest=fewest))
        if not hurries:
            await asyncio.sleep((time.monotonic() - began) * REST)

    async def _try(self, what: str, work: Awaitable[None]) -> None:
        """Do it; if the store is busy, wait instead, as somebody will find the same owners later."""
        try:
            await work
        except EventStoreBusy as busy:
            log.info("%s waits: %s", what, busy)
            await asyncio.sleep(busy.retry_after)
        except Exception:
            log.exception("%s failed", what)
