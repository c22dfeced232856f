"""Recent batches in memory: one `Memtable` a journal segment, readable by owner and series.

A memtable holds exactly the records of its segment, in their order. It only grows, until its segment is rotated; then
it does not change any more. Whoever reads one that may still grow holds the lock of its `Live`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from apiserver.events.model import EventType, LogColumns, Owner, Sample, SeriesName
from apiserver.stores.events.embedded.points import Curve, Points
from apiserver.stores.events.embedded.records import Record

Name = tuple[str, str]  # metric, variant
Matcher = Callable[[str, str], bool]
SampleKey = tuple[int, str]  # iteration, key


class ScalarPart(NamedTuple):
    """Points start ≤ n < stop of a record, all of one series and worker."""

    record: Record
    start: int
    stop: int
    worker: int

    def curve(self) -> Curve:
        """Their first two columns, in the order they were sent."""
        return Curve(self.record.iters[self.start : self.stop], self.record.values[self.start : self.stop])

    def points(self) -> Points:
        """All their columns, in the order they were sent."""
        length = self.stop - self.start
        return Points(
            *self.curve(),
            self.record.timestamps[self.start : self.stop],
            np.full(length, self.worker),
            np.full(length, self.record.received),
        )


class LogPart(NamedTuple):
    """Lines of one owner and record; the first of them has `sequence`."""

    sequence: int
    received: int
    columns: LogColumns


@dataclass(slots=True)
class HotSeries:
    """A scalar series in a memtable; `index` counts the memtable's series."""

    index: int
    parts: list[ScalarPart] = field(default_factory=list)


@dataclass(slots=True)
class HotOwner:
    """What a memtable holds of one owner."""

    scalars: dict[Name, HotSeries] = field(default_factory=dict)
    logs: list[LogPart] = field(default_factory=list)
    digests: set[bytes] = field(default_factory=set)
    samples: dict[EventType, dict[Name, dict[SampleKey, Sample]]] = field(default_factory=dict)

    def scalar_parts(self, matches: Matcher) -> dict[Name, list[ScalarPart]]:
        """The parts of each matching series; a copy."""
        return {name: series.parts.copy() for name, series in self.scalars.items() if matches(*name)}

    def samples_of(self, type: EventType, matches: Matcher) -> dict[Name, dict[SampleKey, Sample]]:
        """The samples of each matching series; a copy."""
        return {name: found.copy() for name, found in self.samples.get(type, {}).items() if matches(*name)}

    def everything(self) -> HotOwner:
        """A copy of it all."""
        return HotOwner(
            {name: HotSeries(series.index, series.parts.copy()) for name, series in self.scalars.items()},
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
        # Of every scalar group, in order: what a merge needs of them, as columns.
        self.group_series: list[int] = []
        self.group_lengths: list[int] = []
        self.group_workers: list[int] = []

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
            found = self.owners[owner] = HotOwner()
        return found

    def _add_scalars(self, record: Record, workers: Workers) -> None:
        for group in record.scalars:
            scalars = self._owner(group.owner).scalars
            name = (group.metric, group.variant)
            series = scalars.get(name)
            if series is None:
                series = scalars[name] = HotSeries(len(self.series_names))
                self.series_names.append((group.owner, *name))
            worker = workers.number(group.worker)
            series.parts.append(ScalarPart(record, group.start, group.stop, worker))
            self.group_series.append(series.index)
            self.group_lengths.append(group.stop - group.start)
            self.group_workers.append(worker)

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
