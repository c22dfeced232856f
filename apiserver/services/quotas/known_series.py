"""Which series owners have, of those that sent something lately: so each batch tells which of its series are new."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from apiserver.events.model import SAMPLE_TYPES, EventBatch, EventType, Owner, SeriesName
from apiserver.stores.events.base import EventStore

#: About as many series are remembered, as a number of 60 bytes each.
MOST = 250_000


class KnownSeries:
    """The series of owners, each as a number. Those that are deleted meanwhile stay known."""

    def __init__(self, events: EventStore, most: int = MOST) -> None:
        self._events = events
        self._most = most
        self._known: dict[Owner, set[int]] = {}
        self._count = 0

    async def of(self, owner: Owner) -> set[int]:
        """The numbers of an owner's series; they are asked for when they are not in memory."""
        known = self._known.pop(owner, None)
        if known is None:
            found = await self._events.series(owner, [EventType.SCALAR, *SAMPLE_TYPES])
            # Another batch may have asked meanwhile, and have added its series.
            known = self._known.pop(owner, None)
            if known is None:
                known = set(map(number_of, found))
                self._count += len(known)
        self._known[owner] = known
        while self._count > self._most and len(self._known) > 1:
            self._count -= len(self._known.pop(next(iter(self._known))))
        return known

    def add(self, owner: Owner, names: Iterable[SeriesName]) -> None:
        """Note that an owner has more series."""
        known = self._known.get(owner)
        if known is not None:
            before = len(known)
            known.update(map(number_of, names))
            self._count += len(known) - before


def number_of(name: SeriesName) -> int:
    """The number by which a series is known."""
    return hash(name[1:]) if name.type is EventType.SCALAR else hash(tuple(name))


def has_only(batch: EventBatch, known: set[int]) -> bool:
    """Whether a batch of one owner has no other series than these, as far as that can be told at once."""
    scalars = batch.scalars
    return not batch.samples and known.issuperset(map(hash, zip(scalars.metrics, scalars.variants, strict=True)))


def series_in(batch: EventBatch, owner: Owner) -> Sequence[SeriesName]:
    """The series of an owner in a batch, each once, in the order in which they come. Log lines have none."""
    scalars = batch.scalars
    places = zip(scalars.owner, scalars.metrics, scalars.variants, strict=True)
    names = [SeriesName(EventType.SCALAR, m, v) for n, m, v in places if scalars.owners[n] == owner]
    samples = [SeriesName(one.type, one.metric, one.variant) for one in batch.samples if one.owner == owner]
    return list(dict.fromkeys([*names, *samples]))
