"""What came with merged segments, in short: for each series the least and the greatest iteration.

Who asks what changed since a place in a segment that was merged not long ago is told all that came with it.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import NamedTuple

from apiserver.events.changes import OwnerChanges
from apiserver.events.model import Int64Array, Owner, SeriesName
from apiserver.events.queries import Range
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.embedded.hot import HotOwner, Memtable

#: An owner takes about as much memory as so many series, of which each takes some 30 bytes.
_AN_OWNER = 16
#: Names of series that are kept once for all summaries.
_MOST_NAMES = 100_000


class Place(NamedTuple):
    """A place in the journal: behind all segments before `segment`, and so many records of it."""

    segment: int
    records: int


class OwnerSummary(NamedTuple):
    """What an owner got with a segment. `series` are the places of `names` in `ends`."""

    place: Place
    """Behind the owner's last record."""
    names: tuple[Name, ...]
    series: array[int]
    ends: tuple[Int64Array, Int64Array]
    """The least and the greatest iteration of each series of the segment."""
    samples: dict[SeriesName, Range]
    lines: int


@dataclass(slots=True, frozen=True)
class Summary:
    """What came with a segment."""

    segment: int
    owners: dict[Owner, OwnerSummary]
    size: int
    """About how much memory it takes, counted in series."""


class Summaries:
    """Makes summaries that have their names in common. Only the merging thread may call it."""

    def __init__(self) -> None:
        self._names: dict[Name, Name] = {}

    def of(self, table: Memtable) -> Summary:
        """The summary of a memtable that does not grow any more."""
        if len(self._names) > _MOST_NAMES:
            self._names.clear()
        ends = table.columns.ends_of_all(len(table.series_names))
        owners = {owner: self._of_owner(table, hot, ends) for owner, hot in table.owners.items()}
        size = sum([_AN_OWNER + len(one.names) + len(one.samples) for one in owners.values()])
        return Summary(table.segment, owners, size)

    def _of_owner(self, table: Memtable, hot: HotOwner, ends: tuple[Int64Array, Int64Array]) -> OwnerSummary:
        samples = OwnerChanges()
        for _, series, iter in hot.arrivals:
            samples.widen(series, Range(iter, iter))
        return OwnerSummary(
            Place(table.segment, hot.records),
            tuple([self._names.setdefault(name, name) for name in hot.scalars]),
            array("i", [series.index for series in hot.scalars.values()]),
            ends,
            samples.series,
            sum([len(part.columns.messages) for part in hot.logs]),
        )
