"""Remembers the series of owners that sent events lately, so that each batch tells which of its series are new.

A series is known by a number of 8 bytes. The numbers of an owner are a sorted array: 100,000 series take 800 kB.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from apiserver.events.model import SAMPLE_TYPES, EventBatch, EventType, Int64Array, Owner, SeriesName
from apiserver.stores.events.base import EventStore

#: Most numbers that are remembered, and the numbers whose room an owner takes besides its own.
MOST, _OWNER = 4_000_000, 50


@dataclass(slots=True)
class SeriesNumbers:
    """The numbers of the series that an owner is known to have."""

    numbers: Int64Array
    """They ascend."""
    whole: bool = False
    """Whether these are all series that the owner has, or only the series that came lately."""

    def new(self, numbers: Sequence[int]) -> list[int]:
        """The numbers that the owner does not have yet, each once."""
        if not len(self.numbers):
            return list(dict.fromkeys(numbers))
        asked = np.array(numbers, np.int64)
        at = np.searchsorted(self.numbers, asked)
        at[at == len(self.numbers)] = 0
        return list(dict.fromkeys(asked[self.numbers[at] != asked].tolist()))

    def add(self, numbers: Sequence[int]) -> None:
        """Note that the owner has these series, too."""
        self.numbers = np.union1d(self.numbers, np.array(numbers, np.int64))


class KnownSeries:
    """The series of owners. Deleted series stay known until the next sum finds fewer (`amounts.py`).

    If there are too many, those are forgotten that were asked for longest ago, of the company that has most. So no
    company makes the server ask the store again and again for the series of another.
    """

    def __init__(self, events: EventStore, most: int = MOST) -> None:
        self._events = events
        self._most = most
        self._known: dict[str, dict[Owner, SeriesNumbers]] = {}
        self._counts: Counter[str] = Counter()
        self._count = 0

    def of(self, owner: Owner) -> SeriesNumbers:
        """The known series of an owner, without a question to the store."""
        of_company = self._known.setdefault(owner.company, {})
        series = of_company.pop(owner, None)
        if series is None:
            series = SeriesNumbers(np.zeros(0, np.int64))
            self._counted(owner, _OWNER)
        of_company[owner] = series
        return series

    async def whole(self, owner: Owner) -> SeriesNumbers:
        """All series of an owner: in the store, and in batches that are to be stored."""
        found = await self._events.series(owner, [EventType.SCALAR, *SAMPLE_TYPES])
        known = self.of(owner)
        known.whole = True
        self.add(owner, list(map(number_of, found)))
        return known

    def add(self, owner: Owner, numbers: Sequence[int]) -> None:
        """Note that an owner has these series, too."""
        known = self.of(owner)
        before = len(known.numbers)
        known.add(numbers)
        self._counted(owner, len(known.numbers) - before)

    def counts(self, company: str) -> dict[Owner, int]:
        """How many series are known of each owner of a company."""
        return {owner: len(known.numbers) for owner, known in self._known.get(company, {}).items()}

    def forget(self, owner: Owner) -> None:
        """Know no series of an owner any more."""
        known = self._known.get(owner.company, {}).pop(owner, None)
        if known is not None:
            size = len(known.numbers) + _OWNER
            self._counts[owner.company] -= size
            self._count -= size

    def _counted(self, owner: Owner, more: int) -> None:
        self._counts[owner.company] += more
        self._count += more
        while self._count > self._most:
            company, _ = self._counts.most_common(1)[0]
            oldest = next((one for one in self._known[company] if one != owner), None)
            if oldest is None:
                return
            self.forget(oldest)


def number_of(name: SeriesName) -> int:
    """The number by which a series is known."""
    return hash(name[1:]) if name.type is EventType.SCALAR else hash(tuple(name))


def number_of_batch(batch: EventBatch) -> int:
    """A number for the series of a batch of one owner, which is made sooner than one for each; 0 if it has samples."""
    return 0 if batch.samples else hash((tuple(batch.scalars.metrics), tuple(batch.scalars.variants)))


def numbers_in(batch: EventBatch) -> dict[Owner, list[int]]:
    """The numbers of the series of each owner, in the order in which they come. Log lines have none."""
    scalars = batch.scalars
    numbers: Iterable[int] = map(hash, zip(scalars.metrics, scalars.variants, strict=True))
    if len(scalars.owners) == 1 and not batch.samples:  # the usual case
        return {scalars.owners[0]: list(numbers)}
    by_owner: dict[Owner, list[int]] = {}
    for place, number in zip(scalars.owner, numbers, strict=True):
        by_owner.setdefault(scalars.owners[place], []).append(number)
    for sample in batch.samples:
        by_owner.setdefault(sample.owner, []).append(number_of(SeriesName(sample.type, sample.metric, sample.variant)))
    return by_owner
