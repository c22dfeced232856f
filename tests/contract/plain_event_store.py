"""An event store of plain dicts and loops: slow, kept nowhere, and so simple that it can be believed.

It runs the contract suite itself, and other engines are compared with it.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np

from apiserver.events.model import (
    SINGLE_VALUE_ITERATION,
    BucketAxis,
    Buckets,
    EventBatch,
    EventType,
    LogLine,
    LogPosition,
    LogSize,
    Owner,
    Sample,
    SamplePosition,
    SampleSeries,
    ScalarPoints,
    ScalarPosition,
    ScalarStats,
    Selection,
    SeriesName,
    WorkerMeans,
    WorkerSpan,
)
from apiserver.stores.events.base import TIMESTAMP_BYTES, CountedBuckets, Width, page_of, whole_timestamps_of

Name = tuple[str, str]


def selects(selection: Selection, metric: str, variant: str) -> bool:
    """Whether `selection` holds the series (metric, variant)."""
    return not selection or any(
        metric == wanted.metric and (not wanted.variants or variant in wanted.variants) for wanted in selection
    )


@dataclass(frozen=True)
class Point:
    iter: int
    timestamp: int
    value: float
    worker: str
    received: int


@dataclass
class OwnerEvents:
    scalars: dict[Name, dict[int, Point]] = field(default_factory=dict)
    logs: list[LogLine] = field(default_factory=list)
    digests: set[bytes] = field(default_factory=set)
    samples: dict[tuple[EventType, str, str, int, str], Sample] = field(default_factory=dict)

    def clear(self, type: EventType) -> int:
        """Forget the events of a type; return how many there were."""
        before = self.count(type)
        if type is EventType.SCALAR:
            self.scalars.clear()
        elif type is EventType.LOG:
            self.logs.clear()
            self.digests.clear()
        else:
            self.samples = {key: sample for key, sample in self.samples.items() if sample.type is not type}
        return before

    def count(self, type: EventType) -> int:
        if type is EventType.SCALAR:
            return sum(map(len, self.scalars.values()))
        if type is EventType.LOG:
            return len(self.logs)
        return sum(sample.type is type for sample in self.samples.values())


class PlainEventStore:
    """The EventStore protocol, word by word."""

    def __init__(self) -> None:
        self._owners: dict[Owner, OwnerEvents] = {}
        self.reads_in_parallel = False
        self.unstated: set[Owner] = set()
        self._untold: set[Owner] = set()
        """Those among them that were left before the store was opened, and that nobody was told of since."""
        self._sequence = 0

    async def open(self) -> None:
        self._untold = set(self.unstated)

    async def close(self) -> None:
        pass

    async def check(self) -> None:
        pass

    def _of(self, owner: Owner) -> OwnerEvents:
        return self._owners.get(owner, OwnerEvents())

    def _made(self, owner: Owner) -> OwnerEvents:
        self.unstated.add(owner)
        return self._owners.setdefault(owner, OwnerEvents())

    async def add(self, batch: EventBatch) -> Mapping[str, int]:
        for group in batch.scalars:
            series = self._made(group.owner).scalars.setdefault((group.metric, group.variant), {})
            for iter, timestamp, value in zip(
                group.iters.tolist(), group.timestamps.tolist(), group.values.tolist(), strict=True
            ):
                series[iter] = Point(iter, timestamp, value, group.worker, batch.received)
        for sample in batch.samples:
            key = (sample.type, sample.metric, sample.variant, sample.iter, sample.key)
            self._made(sample.owner).samples[key] = sample
        sent_before = {owner: set(events.digests) for owner, events in self._owners.items()}
        for logs in batch.logs:
            if logs.digest is not None and logs.digest in sent_before.get(logs.owner, ()):
                continue
            events = self._made(logs.owner)
            if logs.digest is not None:
                events.digests.add(logs.digest)
            for n, (time, level, worker, message, iter, metric, variant) in enumerate(
                zip(
                    logs.timestamps.tolist(),
                    logs.levels,
                    logs.workers,
                    logs.messages,
                    logs.iters,
                    logs.metrics,
                    logs.variants,
                    strict=True,
                )
            ):
                self._sequence += 1
                position, received, extra = LogPosition(time, self._sequence), batch.received, logs.extras.get(n)
                events.logs.append(LogLine(position, level, worker, message, iter, metric, variant, received, extra))
        return {}

    async def delete(self, owners: Sequence[Owner], types: Sequence[EventType] | None = None) -> int:
        return sum(
            self._of(owner).clear(type) for owner in set(owners) for type in set(EventType if types is None else types)
        )

    async def delete_logs(self, owner: Owner, before: int | None, exclude: Selection, include: Selection) -> int:
        events = self._of(owner)

        def doomed(line: LogLine) -> bool:
            name = (line.metric, line.variant)
            old = before is None or line.position.timestamp < before
            return old and selects(include, *name) and not (exclude and selects(exclude, *name))

        kept = [line for line in events.logs if not doomed(line)]
        deleted = len(events.logs) - len(kept)
        events.logs[:] = kept
        return deleted

    async def owners(self) -> AsyncIterator[Owner]:
        for owner in list(self._owners):
            yield owner

    async def series(self, owner: Owner, types: Sequence[EventType] | None = None) -> list[SeriesName]:
        events = self._of(owner)
        found = {SeriesName(EventType.SCALAR, *name) for name in events.scalars}
        found |= {SeriesName(EventType.LOG, line.metric, line.variant) for line in events.logs}
        found |= {SeriesName(sample.type, sample.metric, sample.variant) for sample in events.samples.values()}
        return sorted(name for name in found if types is None or name.type in types)

    async def scalar_stats(self, owners: Sequence[Owner], selection: Selection = ()) -> list[ScalarStats]:
        return [
            _stats(owner, name, list(points.values()))
            for owner in sorted(set(owners))
            for name, points in sorted(self._of(owner).scalars.items())
            if selects(selection, *name)
        ]

    async def scalar_buckets(
        self,
        owner: Owner,
        axis: BucketAxis,
        width: Width,
        selection: Selection = (),
        *,
        start: int | None = None,
        stop: int | None = None,
        envelope: bool = False,
        ends: bool = True,
        counted: CountedBuckets | None = None,
    ) -> list[Buckets]:
        def x(point: Point) -> int:
            return point.iter if axis is BucketAxis.ITER else point.timestamp

        found = []
        for name, points in sorted(self._of(owner).scalars.items()):
            curve = sorted(map(x, (point for point in points.values() if point.iter != SINGLE_VALUE_ITERATION)))
            if selects(selection, *name) and curve:
                interval = width(len(curve), curve[0], curve[-1])
                inside = [
                    point
                    for point in points.values()
                    if (start is None or x(point) >= start) and (stop is None or x(point) <= stop)
                ]
                found.append(_buckets(name, interval, x, inside))
                if counted is not None:
                    counted(1, len(found[-1].x))
        return found

    async def scalar_points(
        self,
        owner: Owner,
        selection: Selection = (),
        *,
        after: ScalarPosition | None = None,
        descending: bool = False,
        limit: int,
        whole_iterations: bool = False,
    ) -> ScalarPoints:
        names = sorted(name for name in self._of(owner).scalars if selects(selection, *name))
        found = [
            (ScalarPosition(iter, *name), point)
            for name in names
            for iter, point in self._of(owner).scalars[name].items()
        ]
        page = _page(found, lambda one: one[0], after, descending, limit)
        if whole_iterations and page:
            end = (page[-1][0].iter, "", "")
            rest = _page(found, lambda one: one[0], page[-1][0], descending, len(found))
            page += [one for one in rest if one[0].iter == end[0]]
        return _columns([((at.metric, at.variant), point) for at, point in page])

    async def earliest_points(
        self, owner: Owner, selection: Selection = (), *, after: int | None = None, limit: int
    ) -> ScalarPoints:
        found = [
            (point.timestamp, point.iter, *name, point)
            for name, points in self._of(owner).scalars.items()
            for point in points.values()
            if selects(selection, *name) and (after is None or point.timestamp > after)
        ]
        found.sort(key=lambda row: row[:4])
        page = [row for row in found if row[0] <= found[min(limit, len(found)) - 1][0]]
        return _columns([((metric, variant), point) for *_, metric, variant, point in page])

    async def last_values(self, owner: Owner, selection: Selection, n: int) -> dict[Name, list[float]]:
        return {
            name: [points[iter].value for iter in sorted(points)[max(0, len(points) - n) :]]
            for name, points in sorted(self._of(owner).scalars.items())
            if selects(selection, *name)
        }

    async def worker_spans(self, owner: Owner, selection: Selection = ()) -> list[WorkerSpan]:
        return [
            WorkerSpan(*name, len(times), min(times), max(times))
            for name, points in self._by_worker(owner, selection).items()
            if (times := [point.timestamp for point in points])
        ]

    async def worker_means(
        self, owner: Owner, selection: Selection = (), *, start: int, stop: int, step: int
    ) -> list[WorkerMeans]:
        found = []
        for name, points in self._by_worker(owner, selection).items():
            values: dict[int, list[float]] = {}
            for point in points:
                if start <= point.timestamp <= stop and math.isfinite(point.value):
                    values.setdefault((point.timestamp - start) // step, []).append(point.value)
            steps = sorted(values)
            means = [math.fsum(values[number]) / len(values[number]) for number in steps]
            if steps:
                counts = np.array([len(values[number]) for number in steps], np.int64)
                found.append(WorkerMeans(*name, np.array(steps, np.int64), counts, np.array(means)))
        return found

    def _by_worker(self, owner: Owner, selection: Selection) -> dict[tuple[str, str, str], list[Point]]:
        found: dict[tuple[str, str, str], list[Point]] = {}
        for name, points in self._of(owner).scalars.items():
            for point in points.values() if selects(selection, *name) else ():
                found.setdefault((*name, point.worker), []).append(point)
        return dict(sorted(found.items()))

    async def log_lines(
        self,
        owner: Owner,
        selection: Selection = (),
        *,
        after: LogPosition | None = None,
        descending: bool = False,
        limit: int,
        whole_timestamps: bool = False,
        workers: Collection[str] | None = None,
    ) -> list[LogLine]:
        lines = [
            line
            for line in self._of(owner).logs
            if selects(selection, line.metric, line.variant) and (workers is None or line.worker in workers)
        ]
        page = _page(lines, lambda line: line.position, after, descending, limit)
        if whole_timestamps and page:
            rest = _page(lines, lambda line: line.position, page[-1].position, descending, len(lines))
            page += [line for line in rest if line.position.timestamp == page[-1].position.timestamp]
            if len(page_of(page)) < len(page):
                same = [line for line in page if line.position.timestamp == page[0].position.timestamp]
                return whole_timestamps_of(page_of(page)) or page_of(same, TIMESTAMP_BYTES)
        return page_of(page)

    async def log_count(self, owner: Owner, selection: Selection = ()) -> int:
        return sum(selects(selection, line.metric, line.variant) for line in self._of(owner).logs)

    async def log_sizes(self, owner: Owner) -> dict[str, LogSize]:
        found: dict[str, list[LogLine]] = {}
        for line in self._of(owner).logs:
            found.setdefault(line.worker, []).append(line)
        return {
            worker: LogSize(
                min(line.position.timestamp for line in lines),
                sum(len(line.message.encode()) + (not line.message.endswith("\n")) for line in lines),
            )
            for worker, lines in found.items()
        }

    def _samples(self, owner: Owner, type: EventType, selection: Selection) -> list[Sample]:
        return [
            sample
            for sample in self._of(owner).samples.values()
            if sample.type is type and selects(selection, sample.metric, sample.variant)
        ]

    async def sample_series(self, owner: Owner, type: EventType, selection: Selection = ()) -> list[SampleSeries]:
        found: dict[Name, list[Sample]] = {}
        for sample in self._samples(owner, type, selection):
            found.setdefault((sample.metric, sample.variant), []).append(sample)
        return [
            SampleSeries(
                *name,
                len(samples),
                min(sample.iter for sample in samples),
                max(sample.iter for sample in samples),
                max(sample.timestamp for sample in samples),
            )
            for name, samples in sorted(found.items())
        ]

    async def samples(
        self,
        owner: Owner,
        type: EventType,
        selection: Selection = (),
        *,
        after: SamplePosition | None = None,
        descending: bool = False,
        limit: int,
        min_iter: int | None = None,
        max_iter: int | None = None,
    ) -> list[Sample]:
        found = [
            sample
            for sample in self._samples(owner, type, selection)
            if (min_iter is None or sample.iter >= min_iter) and (max_iter is None or sample.iter <= max_iter)
        ]
        return page_of(_page(found, _sample_position, after, descending, limit))

    async def latest_samples(
        self,
        owner: Owner,
        type: EventType,
        selection: Selection = (),
        *,
        iterations: int,
        after: SamplePosition | None = None,
    ) -> list[Sample]:
        ordered = sorted(self._samples(owner, type, selection), key=_newest_first)
        found: list[Sample] = []
        for _, series in groupby(ordered, key=lambda one: (one.metric, one.variant)):
            by_iter = [list(ones) for _, ones in groupby(series, key=lambda one: one.iter)]
            found += [one for ones in by_iter[:iterations] for one in ones]
        return page_of(one for one in found if after is None or _newest_first(one) > _newest_first(after))

    async def sample_iterations(
        self,
        owner: Owner,
        type: EventType,
        selection: Selection = (),
        *,
        beyond: int | None = None,
        descending: bool = True,
        limit: int,
    ) -> list[int]:
        iters = {sample.iter for sample in self._samples(owner, type, selection)}
        return _page(iters, lambda iter: iter, beyond, descending, limit)

    async def events_count(self, owner: Owner, types: Sequence[EventType] | None = None) -> int:
        return sum(self._of(owner).count(type) for type in set(EventType if types is None else types))

    async def owners_to_restate(self) -> AsyncIterator[Owner]:
        self._untold.clear()
        for owner in sorted(self.unstated):
            yield owner

    async def restated(self, owners: Collection[Owner]) -> None:
        self.unstated.difference_update(set(owners) - self._untold)


def _page(items: Iterable[Any], key: Callable[[Any], Any], after: Any, descending: bool, limit: int) -> list[Any]:
    ordered = sorted(items, key=key, reverse=descending)
    return [item for item in ordered if after is None or (key(item) < after if descending else key(item) > after)][
        :limit
    ]


def _newest_first(one: Sample | SamplePosition) -> tuple[str, str, int, str]:
    return (one.metric, one.variant, -one.iter, one.key)


def _sample_position(sample: Sample) -> SamplePosition:
    return SamplePosition(sample.iter, sample.metric, sample.variant, sample.key)


def _stats(owner: Owner, name: Name, points: list[Point]) -> ScalarStats:
    by_time = sorted(points, key=lambda point: (point.timestamp, point.iter))
    finite = [point for point in points if math.isfinite(point.value)]
    least = min(finite, key=lambda point: (point.value, point.iter), default=None)
    greatest = min(finite, key=lambda point: (-point.value, point.iter), default=None)
    return ScalarStats(
        owner=owner,
        metric=name[0],
        variant=name[1],
        count=len(points),
        finite_count=len(finite),
        min_iter=min(point.iter for point in points),
        max_iter=max(point.iter for point in points),
        min_timestamp=by_time[0].timestamp,
        max_timestamp=by_time[-1].timestamp,
        first_value=by_time[0].value,
        first_iter=by_time[0].iter,
        last_value=by_time[-1].value,
        last_iter=by_time[-1].iter,
        min_value=least.value if least else None,
        min_value_iter=least.iter if least else None,
        max_value=greatest.value if greatest else None,
        max_value_iter=greatest.iter if greatest else None,
        sum=math.fsum(point.value for point in finite),
    )


def _columns(page: list[tuple[Name, Point]]) -> ScalarPoints:
    names = sorted({name for name, _ in page})
    return ScalarPoints(
        names=names,
        series=np.array([names.index(name) for name, _ in page], np.int32),
        iters=np.array([point.iter for _, point in page], np.int64),
        timestamps=np.array([point.timestamp for _, point in page], np.int64),
        values=np.array([point.value for _, point in page], np.float64),
        workers=[point.worker for _, point in page],
        received=np.array([point.received for _, point in page], np.int64),
    )


def _buckets(name: Name, interval: int, x: Callable[[Point], int], points: list[Point]) -> Buckets:
    chosen = sorted((point for point in points if point.iter != SINGLE_VALUE_ITERATION), key=lambda p: (x(p), p.iter))
    rows = [
        (max(number * interval, -(2**63)), *_summed([point.value for point in bucket]))
        for number, bucket in groupby(chosen, key=lambda point: x(point) // interval)
    ]
    x_column, count, *rest = list(zip(*rows, strict=True)) or [()] * 7
    mean, least, greatest, first, last = (np.array(column, np.float64) for column in rest)
    ends = (np.array(x_column, np.int64), np.array(count, np.int64))
    return Buckets(*name, *ends, mean, least, greatest, first, last)


def _summed(values: list[float]) -> tuple[int, float, float, float, float, float]:
    finite = [value for value in values if math.isfinite(value)] or [math.nan]
    return len(values), math.fsum(finite) / len(finite), min(finite), max(finite), values[0], values[-1]
