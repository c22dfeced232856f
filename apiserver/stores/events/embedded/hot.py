"""Recent batches in memory: one `Memtable` a journal segment, readable by owner and series.

A memtable holds exactly the records of its segment, in their order. It only grows, until its segment is rotated; then
it does not change any more. Whoever reads one that may still grow holds the lock of its `Live`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import accumulate, repeat
from typing import NamedTuple

import numpy as np

from apiserver.events.model import EventType, LogColumns, Owner, Sample, SeriesName
from apiserver.stores.events.embedded.points import Points
from apiserver.stores.events.embedded.records import Record

Name = tuple[str, str]  # metric, variant
Matcher = Callable[[str, str], bool]
SampleKey = tuple[int, str]  # iteration, key


@dataclass(slots=True)
class HotGroups:
    """The groups of points of all records of a memtable, as columns; they only grow."""

    records: list[Record] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    workers: list[int] = field(default_factory=list)
    series: list[int] = field(default_factory=list)


class HotPoints(NamedTuple):
    """Some groups of one series, in the order they were sent."""

    groups: HotGroups
    numbers: list[int]

    def points(self) -> Points:
        """Their points, as they were sent: in any order, perhaps several of one iteration."""
        groups = self.groups
        parts = [
            (groups.records[n], slice(groups.starts[n], groups.starts[n] + groups.lengths[n])) for n in self.numbers
        ]
        lengths = [groups.lengths[n] for n in self.numbers]
        return Points(
            iters=np.concatenate([record.iters[where] for record, where in parts]),
            values=np.concatenate([record.values[where] for record, where in parts]),
            timestamps=np.concatenate([record.timestamps[where] for record, where in parts]),
            workers=np.repeat([groups.workers[n] for n in self.numbers], lengths),
            received=np.repeat([record.received for record, _ in parts], lengths),
        )


class LogPart(NamedTuple):
    """Lines of one owner and record; the first of them has `sequence`."""

    sequence: int
    received: int
    columns: LogColumns


@dataclass(slots=True)
class HotSeries:
    """A scalar series in a memtable: which of the memtable's series it is, and the numbers of its groups."""

    index: int
    numbers: list[int] = field(default_factory=list)


@dataclass(slots=True)
class HotOwner:
    """What a memtable holds of one owner."""

    groups: HotGroups
    scalars: dict[Name, HotSeries] = field(default_factory=dict)
    logs: list[LogPart] = field(default_factory=list)
    digests: set[bytes] = field(default_factory=set)
    samples: dict[EventType, dict[Name, dict[SampleKey, Sample]]] = field(default_factory=dict)

    def points(self, matches: Matcher) -> dict[Name, HotPoints]:
        """The points of each matching series; a copy."""
        return {
            name: HotPoints(self.groups, series.numbers.copy())
            for name, series in self.scalars.items()
            if matches(*name)
        }

    def samples_of(self, type: EventType, matches: Matcher) -> dict[Name, dict[SampleKey, Sample]]:
        """The samples of each matching series; a copy."""
        return {name: found.copy() for name, found in self.samples.get(type, {}).items() if matches(*name)}

    def everything(self) -> HotOwner:
        """A copy of it all."""
        return HotOwner(
            self.groups,
            {name: HotSeries(series.index, series.numbers.copy()) for name, series in self.scalars.items()},
            self.logs.copy(),
            self.digests.copy(),
            {type: self.samples_of(type, lambda *name: True) for type in self.samples},
        )

    def names(self) -> tuple[set[SeriesName], list[LogPart]]:
        """Every series of scalars and samples, and the parts that say which series of logs there are; a copy."""
        scalars = {SeriesName(EventType.SCALAR, *name) for name in self.scalars}
        samples = {SeriesName(type, *name) for type, found in self.samples.items() for name in found}
        return scalars | samples, self.logs.copy()


class Workers:
    """Numbers of the names of reporting processes, the same in memory and on disk; a number is never given anew."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.names = list(names)
        self._numbers = {name: number for number, name in enumerate(self.names)}

    def number(self, name: str) -> int:
        """The number of `name`, given now if it has none yet; only one thread at a time may ask."""
        found = self._numbers.get(name)
        if found is None:
            found = self._numbers[name] = len(self.names)
            self.names.append(name)
        return found


class Memtable:
    """The records of one journal segment."""

    def __init__(self, segment: int) -> None:
        self.segment = segment
        self.owners: dict[Owner, HotOwner] = {}
        self.records: list[Record] = []
        self.events = 0
        self.size = 0
        self.next_sequence = 0
        self.series_names: list[tuple[Owner, str, str]] = []
        """Of each series, by its index."""
        self.groups = HotGroups()

    def add(self, record: Record, workers: Workers) -> None:
        """Take in a record that its journal segment has."""
        self.records.append(record)
        self.events += len(record.iters) + record.lines + len(record.samples)
        self.size += record.size
        self._add_scalars(record, workers)
        self._add_logs(record)
        for sample in record.samples:
            series = self._owner(sample.owner).samples.setdefault(sample.type, {})
            series.setdefault((sample.metric, sample.variant), {})[sample.iter, sample.key] = sample

    def _owner(self, owner: Owner) -> HotOwner:
        found = self.owners.get(owner)
        if found is None:
            found = self.owners[owner] = HotOwner(self.groups)
        return found

    def _add_scalars(self, record: Record, workers: Workers) -> None:
        sent, groups = record.groups, self.groups
        number = len(groups.records)
        groups.starts += accumulate(sent.lengths[:-1], initial=0) if sent.lengths else ()
        groups.lengths += sent.lengths
        groups.workers += map(workers.number, sent.workers)
        groups.records += repeat(record, len(sent.lengths))
        scalars = [self._owner(owner).scalars for owner in record.owners]
        for owner, name in zip(sent.owners, zip(sent.metrics, sent.variants, strict=True), strict=True):
            series = scalars[owner].get(name)
            if series is None:
                series = scalars[owner][name] = HotSeries(len(self.series_names))
                self.series_names.append((record.owners[owner], *name))
            series.numbers.append(number)
            groups.series.append(series.index)
            number += 1

    def _add_logs(self, record: Record) -> None:
        sequence = record.sequence
        for columns in record.logs:
            owner = self._owner(columns.owner)
            owner.logs.append(LogPart(sequence, record.received, columns))
            sequence += len(columns.messages)
            if columns.digest is not None:
                owner.digests.add(columns.digest)
        if record.logs:
            self.next_sequence = sequence
