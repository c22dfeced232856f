"""Recent batches in memory: one `Memtable` for each journal segment, readable by owner and series.

A memtable holds the records of its segment, in their order. It grows until the journal begins another segment, and then
never changes. A reader of a memtable that may grow holds the lock of its `Unmerged`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, repeat
from operator import attrgetter, itemgetter
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from apiserver.events.model import EventType, Float64Array, Int64Array, Owner, Sample, Scalars, SeriesName
from apiserver.events.queries import GREATEST, LEAST
from apiserver.stores.events.codec.lines import LogPart
from apiserver.stores.events.codec.names import Matcher, Name
from apiserver.stores.events.codec.points import Points, Workers, by_series, concat, spread
from apiserver.stores.events.embedded.records import Record

SampleKey = tuple[int, str]  # iteration, key

_FIRST_ROOM = 4096


class HotColumns:
    """The points of all records of a memtable as columns, and the groups in which they came as columns, too.

    Group n has `lengths[n]` points from `starts[n]` on, all of one series, worker and request. For example, a request
    with three points of "loss" and two of "accuracy", and another one with one point of "loss":

        iters     0 1 2 | 0 1 | 3
        starts    0       3     5
        lengths   3       2     1
        series    0       1     0

    If arrays are full, larger ones replace them. So readers may go on reading the old ones.
    """

    def __init__(self, segment: int) -> None:
        self.segment = segment
        """The number of the memtable's segment."""
        self.count = 0
        self._room = _NO_ROOM
        self.starts = array("q")
        self.lengths = array("q")
        self.series = array("q")
        self._workers = array("q")
        self._received = array("q")

    def add(self, record: Record, workers: Iterable[int]) -> None:
        """Take in the points of a record, which has some. The caller adds to `series` which series they are of."""
        points = record.scalars
        start, stop = self.count, self.count + len(points.iters)
        self._make_room(stop)
        self._room.iters[start:stop] = points.iters
        self._room.timestamps[start:stop] = points.timestamps
        self._room.values[start:stop] = points.values
        self.starts.extend(accumulate(points.lengths[:-1], initial=start))
        self.lengths.extend(points.lengths)
        self._workers.extend(workers)
        self._received.extend(repeat(record.received, len(points.lengths)))
        self.count = stop

    def _make_room(self, count: int) -> None:
        room = self._room
        if count > len(room.iters):
            size = max(count, 2 * len(room.iters), _FIRST_ROOM)
            larger = _Room(np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.float64))
            for old, new in zip(room, larger, strict=True):
                new[: self.count] = old[: self.count]
            self._room = larger

    def everything(self) -> Points:
        """All points, in the order they were sent. The memtable must not grow any more."""
        room, count = self._room, self.count
        return Points(
            iters=room.iters[:count],
            values=room.values[:count],
            timestamps=room.timestamps[:count],
            workers=np.repeat(np.array(self._workers), np.array(self.lengths)),
            received=np.repeat(np.array(self._received), np.array(self.lengths)),
        )

    def points(self, numbers: Sequence[int]) -> Points:
        """The points of these groups, one group after another."""
        lengths = np.array([self.lengths[n] for n in numbers], np.int64)
        at = spread(np.array([self.starts[n] for n in numbers], np.int64), lengths)
        room = self._room
        return Points(
            iters=room.iters[at],
            values=room.values[at],
            timestamps=room.timestamps[at],
            workers=np.repeat(np.array([self._workers[n] for n in numbers], np.int64), lengths),
            received=np.repeat(np.array([self._received[n] for n in numbers], np.int64), lengths),
        )

    def ends(self, series: Sequence[Sequence[int]]) -> tuple[Int64Array, Int64Array]:
        """The least and the greatest iteration of each series, by the numbers of its groups; each series has some."""
        numbers = [n for groups in series for n in groups]
        lengths = np.array([self.lengths[n] for n in numbers], np.int64)
        iters = self._room.iters[spread(np.array([self.starts[n] for n in numbers], np.int64), lengths)]
        first_groups = np.cumsum([0, *map(len, series)])[:-1]
        starts = (np.cumsum(lengths) - lengths)[first_groups]
        return np.minimum.reduceat(iters, starts), np.maximum.reduceat(iters, starts)

    def ends_of_all(self, series: int) -> tuple[Int64Array, Int64Array]:
        """The least and the greatest iteration of each of so many series, by its index.

        The memtable must not grow any more.
        """
        least, greatest = np.full(series, GREATEST), np.full(series, LEAST)
        if self.count:
            lows = highs = self._room.iters[: self.count]
            if len(self.starts) < self.count:
                starts = np.array(self.starts)
                lows, highs = np.minimum.reduceat(lows, starts), np.maximum.reduceat(highs, starts)
            of = np.array(self.series)
            np.minimum.at(least, of, lows)
            np.maximum.at(greatest, of, highs)
        return least, greatest


class _Room(NamedTuple):
    """The columns that differ from point to point, with room for more points behind the last one."""

    iters: Int64Array
    timestamps: Int64Array
    values: Float64Array


_NO_ROOM = _Room(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64))


class HotPoints(NamedTuple):
    """Some groups of one series, in the order they were sent."""

    columns: HotColumns
    numbers: list[int]

    @property
    def points_sent(self) -> int:
        """How many points were sent, including those that replace others."""
        return sum([self.columns.lengths[n] for n in self.numbers])

    def points(self) -> Points:
        """The points, as they were sent: in any order, perhaps several of one iteration."""
        return self.columns.points(self.numbers)


def points_by_series(series: Sequence[Sequence[HotPoints]]) -> tuple[Points, npt.NDArray[np.intp]]:
    """The hot points of many series, as `by_series` returns them.

    Each series has some, those of older memtables first.
    """
    tables: dict[int, tuple[HotColumns, list[int], list[int]]] = {}
    for rank, parts in enumerate(series):
        for columns, numbers in parts:
            _, all_numbers, ranks = tables.setdefault(id(columns), (columns, [], []))
            all_numbers += numbers
            ranks += repeat(rank, len(numbers))
    points_of_tables = [
        (columns.points(numbers), np.repeat(ranks, [columns.lengths[n] for n in numbers]))
        for columns, numbers, ranks in sorted(tables.values(), key=lambda table: table[0].segment)
    ]
    return by_series(
        np.concatenate([ranks for _, ranks in points_of_tables]), concat([points for points, _ in points_of_tables])
    )


@dataclass(slots=True)
class HotSeries:
    """A scalar series in a memtable: its index in the memtable's `series_names`, and the numbers of its groups."""

    index: int
    numbers: list[int] = field(default_factory=list)


class Start(NamedTuple):
    """Where a record begins in a memtable: its own number, those of its first group and of its first log line."""

    record: int
    group: int
    line: int


class Sent(NamedTuple):
    """What came of one owner with the records from one on."""

    columns: HotColumns
    groups: dict[Name, list[int]]
    """The numbers of the groups of points, by series."""
    samples: list[tuple[int, SeriesName, int]]
    """For each sample the number of its record, its series and its iteration."""
    lines: int


@dataclass(slots=True)
class HotOwner:
    """The events of one owner in a memtable."""

    columns: HotColumns
    scalars: dict[Name, HotSeries] = field(default_factory=dict)
    logs: list[LogPart] = field(default_factory=list)
    digests: set[bytes] = field(default_factory=set)
    samples: dict[EventType, dict[Name, dict[SampleKey, Sample]]] = field(default_factory=dict)
    arrivals: list[tuple[int, SeriesName, int]] = field(default_factory=list)
    """For each sample, in the order they came, the number of its record, its series and its iteration."""
    records: int = 0
    """How many records the memtable had when the owner's newest one had come."""
    newest: tuple[list[str], list[str], list[HotSeries]] = ([], [], [])
    """Metrics, variants and series of the groups of the owner's newest record that had points of no other owner."""

    def sent_since(self, start: Start) -> Sent:
        """What came with the records from `start` on; a copy."""
        groups = {name: of.numbers[bisect_left(of.numbers, start.group) :] for name, of in self.scalars.items()}
        lines = self.logs[bisect_left(self.logs, start.line, key=attrgetter("sequence")) :]
        return Sent(
            self.columns,
            {name: numbers for name, numbers in groups.items() if numbers},
            self.arrivals[bisect_left(self.arrivals, start.record, key=itemgetter(0)) :],
            sum([len(part.columns.messages) for part in lines]),
        )

    def points(self, matches: Matcher) -> dict[Name, HotPoints]:
        """The points of each matching series; a copy."""
        return {
            name: HotPoints(self.columns, series.numbers.copy())
            for name, series in self.scalars.items()
            if matches(*name)
        }

    def samples_of(self, type: EventType, matches: Matcher) -> dict[Name, dict[SampleKey, Sample]]:
        """The samples of each matching series; a copy."""
        return {name: found.copy() for name, found in self.samples.get(type, {}).items() if matches(*name)}

    def names(self) -> tuple[set[SeriesName], list[LogPart]]:
        """Every series of scalars and samples, and the log lines, which name their series; a copy."""
        scalars = {SeriesName(EventType.SCALAR, *name) for name in self.scalars}
        samples = {SeriesName(type, *name) for type, found in self.samples.items() for name in found}
        return scalars | samples, self.logs.copy()


class Memtable:
    """The records of one journal segment."""

    def __init__(self, segment: int) -> None:
        self.segment = segment
        self.owners: dict[Owner, HotOwner] = {}
        self.events = 0
        self.size = 0
        self.next_sequence = 0
        self.series_names: list[tuple[Owner, str, str]] = []
        """The owner, metric and variant of each series, by the series' index."""
        self.columns = HotColumns(segment)
        self.records = 0
        self._groups = array("q")
        self._lines = array("q")

    def start(self, record: int) -> Start:
        """Where a record begins."""
        return Start(record, self._groups[record], self._lines[record])

    def add(self, record: Record, workers: Workers) -> None:
        """Take in a record, which is already in the journal segment."""
        self.records += 1
        self._groups.append(len(self.columns.lengths))
        self._lines.append(record.sequence)
        self.events += len(record.scalars.iters) + record.lines + len(record.samples)
        self.size += record.size
        if record.scalars.lengths:
            self._add_scalars(record, workers)
        if record.logs:
            self._add_logs(record)
        for sample in record.samples:
            owner = self._owner(sample.owner)
            series = owner.samples.setdefault(sample.type, {})
            series.setdefault((sample.metric, sample.variant), {})[sample.iter, sample.key] = sample
            name = SeriesName(sample.type, sample.metric, sample.variant)
            owner.arrivals.append((self.records - 1, name, sample.iter))

    def points_of(self, owners: Iterable[Owner], name: Name) -> dict[Owner, HotPoints]:
        """The points of one series of each of these owners; a copy."""
        held = [(owner, self.owners[owner].scalars.get(name)) for owner in owners if owner in self.owners]
        return {owner: HotPoints(self.columns, series.numbers.copy()) for owner, series in held if series}

    def _owner(self, owner: Owner) -> HotOwner:
        """The events of an owner, to which the newest record adds some."""
        hot = self.owners.get(owner)
        if hot is None:
            hot = self.owners[owner] = HotOwner(self.columns)
        hot.records = self.records
        return hot

    def _add_scalars(self, record: Record, workers: Workers) -> None:
        sent = record.scalars
        first = len(self.columns.lengths)
        numbers = {name: workers.number(name) for name in dict.fromkeys(sent.workers)}
        self.columns.add(record, map(numbers.__getitem__, sent.workers))
        found = self._series_of(sent)
        self.columns.series.extend([series.index for series in found])
        for number, series in enumerate(found, first):
            series.numbers.append(number)

    def _series_of(self, sent: Scalars) -> list[HotSeries]:
        """The series of each group. Most tasks report the same series each time; then they need not be looked up."""
        owners = [self._owner(owner) for owner in sent.owners]
        if len(owners) == 1 and owners[0].newest[:2] == (sent.metrics, sent.variants):
            return owners[0].newest[2]
        names = zip(sent.metrics, sent.variants, strict=True)
        series = [
            owners[number].scalars.get(name) or self._new_series(sent.owners[number], name)
            for number, name in zip(sent.owner, names, strict=True)
        ]
        if len(owners) == 1:
            owners[0].newest = sent.metrics, sent.variants, series
        return series

    def _new_series(self, owner: Owner, name: Name) -> HotSeries:
        series = self.owners[owner].scalars[name] = HotSeries(len(self.series_names))
        self.series_names.append((owner, *name))
        return series

    def _add_logs(self, record: Record) -> None:
        sequence = record.sequence
        for columns in record.logs:
            owner = self._owner(columns.owner)
            owner.logs.append(LogPart(sequence, record.received, columns))
            sequence += len(columns.messages)
            if columns.digest is not None:
                owner.digests.add(columns.digest)
        self.next_sequence = sequence
