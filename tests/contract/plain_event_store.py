"""An event store of plain dicts and loops: slow, kept nowhere, and so simple that it can be believed.

It runs the contract suite itself, and other engines are compared with it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from operator import gt, lt
from typing import Any

import numpy as np

from apiserver.events.aggregates import Buckets, CurvesInBuckets, Neighbours
from apiserver.events.changes import Changes, ChangesQuery, Cursor, OwnerChanges
from apiserver.events.log_filter import LineFilter, LogHits
from apiserver.events.model import (
    SINGLE_VALUE_ITERATION,
    BucketAxis,
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
from apiserver.events.queries import (
    EVERYWHERE,
    BucketQuery,
    CommonBuckets,
    CurvesQuery,
    Grid,
    PageQuery,
    Range,
    SeriesQuery,
)
from apiserver.stores.events.codec.lines import BODY_ID, Column, Lines, body_id
from apiserver.stores.events.codec.points import Points, WholePoints
from apiserver.stores.events.sizes import TIMESTAMP_BYTES, may_go_on, page_of, whole_timestamps_of
from apiserver.stores.events.usage import TYPES, Usage
from tests.contract.plain_points import Name, Point, buckets_of, checksum_of, columns_of, stats_of, stay_of
from tests.events.plain_smoothing import smoothed

#: Points, or lines, of a part.
WHOLE_AT_ONCE = 5
#: Lines that are searched at once.
LINES_SEARCHED = 2000


def selects(selection: Selection, metric: str, variant: str) -> bool:
    """Whether `selection` names the series (metric, variant)."""
    return not selection or any(
        metric == wanted.metric and (not wanted.variants or variant in wanted.variants) for wanted in selection
    )


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
        self._history: list[tuple[Owner, OwnerChanges]] = []
        self._came: dict[tuple[Owner, EventType], int] = {}
        """How long the history was when events of a type came last."""
        self._grown = asyncio.Event()

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

    def _note(self, owner: Owner, changes: OwnerChanges) -> None:
        self._history.append((owner, changes))
        self._grown.set()

    def _came_since(self, cursor: Any, owner: Owner, type: EventType) -> bool:
        is_known = cursor is None or isinstance(cursor, int)
        return not is_known or (cursor is not None and self._came.get((owner, type), 0) > cursor)

    def _note_new(self, owner: Owner, changes: OwnerChanges, type: EventType) -> None:
        self._note(owner, changes)
        self._came[owner, type] = len(self._history)

    async def add(self, batch: EventBatch) -> Mapping[str, int]:
        for group in batch.scalars:
            name = SeriesName(EventType.SCALAR, group.metric, group.variant)
            iters = Range(int(group.iters.min()), int(group.iters.max()))
            self._note_new(group.owner, OwnerChanges({name: iters}), EventType.SCALAR)
            series = self._made(group.owner).scalars.setdefault((group.metric, group.variant), {})
            for iter, timestamp, value in zip(
                group.iters.tolist(), group.timestamps.tolist(), group.values.tolist(), strict=True
            ):
                series[iter] = Point(iter, timestamp, value, group.worker, batch.received)
        for sample in batch.samples:
            key = (sample.type, sample.metric, sample.variant, sample.iter, sample.key)
            self._made(sample.owner).samples[key] = sample
            name = SeriesName(sample.type, sample.metric, sample.variant)
            self._note_new(sample.owner, OwnerChanges({name: Range(sample.iter, sample.iter)}), sample.type)
        sent_before = {owner: set(events.digests) for owner, events in self._owners.items()}
        for logs in batch.logs:
            before = sent_before.get(logs.owner, set())
            if logs.digest is not None and not before.isdisjoint({logs.digest, body_id(logs.digest)}):
                continue
            events = self._made(logs.owner)
            self._note_new(logs.owner, OwnerChanges(log_lines=len(logs.messages)), EventType.LOG)
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

    # copies

    async def whole_points(self, series: SeriesQuery) -> AsyncIterator[Sequence[WholePoints]]:
        for name, by_iter in self._scalars(series).items():
            points = [by_iter[iter] for iter in sorted(by_iter)]
            workers = sorted({point.worker for point in points})
            for start in range(0, len(points), WHOLE_AT_ONCE):
                some = points[start : start + WHOLE_AT_ONCE]
                columns = Points(
                    np.array([point.iter for point in some], np.int64),
                    np.array([point.value for point in some], np.float64),
                    np.array([point.timestamp for point in some], np.int64),
                    np.array([workers.index(point.worker) for point in some], np.int64),
                    np.array([point.received for point in some], np.int64),
                )
                yield [WholePoints(name, columns, workers)]

    async def put_points(self, owner: Owner, curves: Sequence[WholePoints]) -> None:
        self._note_new(owner, OwnerChanges(everything=True), EventType.SCALAR)
        for name, points, workers in curves:
            series = self._made(owner).scalars.setdefault(name, {})
            for iter, value, timestamp, worker, received in zip(*map(np.ndarray.tolist, points), strict=True):
                series[iter] = Point(iter, timestamp, value, workers[worker], received)

    async def whole_lines(self, owner: Owner) -> AsyncIterator[Lines]:
        lines = sorted(self._of(owner).logs, key=lambda line: line.position)
        for start in range(0, len(lines), WHOLE_AT_ONCE):
            yield _lines(lines[start : start + WHOLE_AT_ONCE])

    async def put_lines(self, owner: Owner, lines: Lines) -> None:
        self._note_new(owner, OwnerChanges(everything=True), EventType.LOG)
        events = self._made(owner)
        taken = {line.position for line in events.logs}
        events.logs += [line for line in lines.log_lines() if line.position not in taken]
        self._sequence = max(self._sequence, int(lines.sequences.max()))

    async def known_bodies(self, owner: Owner) -> Collection[bytes]:
        return {digest if len(digest) == BODY_ID else body_id(digest) for digest in self._of(owner).digests}

    async def know_bodies(self, owner: Owner, ids: Collection[bytes]) -> None:
        self._note(owner, OwnerChanges(everything=True))
        self._made(owner).digests.update(ids)

    async def delete(self, owners: Sequence[Owner], types: Sequence[EventType] | None = None) -> int:
        for owner in owners:
            self._note(owner, OwnerChanges(everything=True))
        return sum(
            self._of(owner).clear(type) for owner in set(owners) for type in set(EventType if types is None else types)
        )

    async def delete_scalars(self, owner: Owner, up_to: Cursor) -> int:
        if self._came_since(up_to, owner, EventType.SCALAR):
            return 0
        return await self.delete([owner], [EventType.SCALAR])

    async def delete_logs(
        self, series: SeriesQuery, before: int | None, exclude: Selection = (), up_to: Cursor | None = None
    ) -> int:
        if self._came_since(up_to, series.owner, EventType.LOG):
            return 0
        events = self._of(series.owner)
        self._note(series.owner, OwnerChanges(everything=True))

        def doomed(line: LogLine) -> bool:
            name = (line.metric, line.variant)
            old = before is None or line.position.timestamp < before
            return old and selects(series.selection, *name) and not (exclude and selects(exclude, *name))

        kept = [line for line in events.logs if not doomed(line)]
        deleted = len(events.logs) - len(kept)
        events.logs[:] = kept
        return deleted

    async def delete_samples(
        self,
        series: SeriesQuery,
        iterations: Range = EVERYWHERE,
        before: int | None = None,
        up_to: Cursor | None = None,
    ) -> int:
        if self._came_since(up_to, series.owner, series.type):
            return 0
        events = self._of(series.owner)
        self._note(series.owner, OwnerChanges(everything=True))

        def doomed(sample: Sample) -> bool:
            old = before is None or sample.timestamp < before
            meant = sample.type is series.type and selects(series.selection, sample.metric, sample.variant)
            return meant and old and iterations.least <= sample.iter <= iterations.greatest

        kept = {key: sample for key, sample in events.samples.items() if not doomed(sample)}
        deleted = len(events.samples) - len(kept)
        events.samples = kept
        return deleted

    async def thin_scalars(self, series: SeriesQuery, points: int, checksums: Mapping[Name, int] | None = None) -> int:
        gone = 0
        for name, by_iter in self._scalars(series).items():
            same = checksums is None or checksums.get(name) == checksum_of(by_iter)
            if len(by_iter) > points and same:
                kept = stay_of(by_iter, points)
                gone += len(by_iter) - len(kept)
                self._owners[series.owner].scalars[name] = {iter: by_iter[iter] for iter in kept}
                self._note(series.owner, OwnerChanges(everything=True))
        return gone

    async def owners(self) -> AsyncIterator[Owner]:
        for owner in list(self._owners):
            yield owner

    async def series(self, owner: Owner, types: Sequence[EventType] | None = None) -> list[SeriesName]:
        events = self._of(owner)
        found = {SeriesName(EventType.SCALAR, *name) for name in events.scalars}
        found |= {SeriesName(EventType.LOG, line.metric, line.variant) for line in events.logs}
        found |= {SeriesName(sample.type, sample.metric, sample.variant) for sample in events.samples.values()}
        return sorted(name for name in found if types is None or name.type in types)

    def _scalars(self, series: SeriesQuery) -> dict[Name, dict[int, Point]]:
        """The points of each series by iteration, sorted by name."""
        found = sorted(self._of(series.owner).scalars.items())
        return {name: points for name, points in found if selects(series.selection, *name)}

    async def scalar_stats(self, series: SeriesQuery, *, spread: bool = False) -> list[ScalarStats]:
        return [
            stats_of(series.owner, name, list(points.values()), spread=spread)
            for name, points in self._scalars(series).items()
        ]

    async def scalar_stats_of_each(self, queries: Sequence[SeriesQuery]) -> list[list[ScalarStats]]:
        return [await self.scalar_stats(series) for series in queries]

    async def scalar_buckets(self, series: SeriesQuery, buckets: BucketQuery) -> list[Buckets]:
        found = []
        for name, curve in self._curves(series, buckets.axis).items():
            places = [x for x, _ in curve]
            values = [point.value for _, point in curve]
            interval = buckets.width(len(curve), places[0], places[-1])
            if buckets.smoothing is not None:
                values = smoothed(buckets.smoothing, places, values)
            points = [
                (x, value)
                for x, value in zip(places, values, strict=True)
                if buckets.range.least <= x <= buckets.range.greatest
            ]
            found.append(buckets_of(name, interval, points, buckets.aggregates))
        return found

    async def scalar_buckets_of_each(self, queries: Sequence[SeriesQuery], buckets: BucketQuery) -> list[list[Buckets]]:
        return [await self.scalar_buckets(series, buckets) for series in queries]

    async def curve_ends(self, asked: CurvesQuery) -> tuple[int, int] | None:
        curves = [curve for owner in asked.owners for curve in self._curves(asked.of(owner), asked.axis).values()]
        found = [x for curve in curves for x, _ in curve]
        return (min(found), max(found)) if found else None

    async def curve_buckets(self, asked: CurvesQuery, buckets: CommonBuckets) -> CurvesInBuckets:
        means = np.full((len(asked.owners), buckets.count), np.nan)
        all_of_them: list[list[float]] = [[] for _ in range(buckets.count)]
        for row, owner in enumerate(asked.owners):
            for curve in self._curves(asked.of(owner), asked.axis).values():
                places, values = [x for x, _ in curve], [point.value for _, point in curve]
                if asked.smoothing is not None:
                    values = smoothed(asked.smoothing, places, values)
                inside: dict[int, list[float]] = {}
                for x, value in zip(places, values, strict=True):
                    number = x // buckets.width - buckets.first
                    if 0 <= number < buckets.count and math.isfinite(value):
                        inside.setdefault(number, []).append(value)
                for number, finite in inside.items():
                    means[row, number] = math.fsum(finite) / len(finite)
                    all_of_them[number] += finite
        least, greatest = [[of(values, default=math.nan) for values in all_of_them] for of in (min, max)]
        return CurvesInBuckets(means, np.array(least, np.float64), np.array(greatest, np.float64))

    async def curve_neighbours(self, asked: CurvesQuery, buckets: CommonBuckets, *, before: bool) -> Neighbours:
        found = Neighbours.empty(len(asked.owners))
        for row, owner in enumerate(asked.owners):
            for curve in self._curves(asked.of(owner), asked.axis).values():
                places, values = [x for x, _ in curve], [point.value for _, point in curve]
                if asked.smoothing is not None:
                    values = smoothed(asked.smoothing, places, values)
                numbers: dict[int, list[float]] = {}
                for x, value in zip(places, values, strict=True):
                    number = x // buckets.width - buckets.first
                    if math.isfinite(value) and (number < 0 if before else number >= buckets.count):
                        numbers.setdefault(number, []).append(value)
                if numbers:
                    nearest = max(numbers) if before else min(numbers)
                    found.numbers[row] = nearest
                    found.means[row] = math.fsum(numbers[nearest]) / len(numbers[nearest])
        return found

    def _curves(self, series: SeriesQuery, axis: BucketAxis) -> dict[Name, list[tuple[int, Point]]]:
        """The points of each series but its single value, in order, with their x; none is empty."""
        found: dict[Name, list[tuple[int, Point]]] = {}
        for name, points in self._scalars(series).items():
            curve = [point for point in points.values() if point.iter != SINGLE_VALUE_ITERATION]
            if axis is BucketAxis.ITER:
                found[name] = sorted([(point.iter, point) for point in curve], key=lambda one: one[0])
                continue
            curve.sort(key=lambda point: (point.timestamp, point.iter))
            begin = curve[0].timestamp if curve and axis is BucketAxis.DURATION else 0
            found[name] = [(min(point.timestamp - begin, 2**63 - 1), point) for point in curve]
        return {name: curve for name, curve in found.items() if curve}

    async def scalar_points(self, series: SeriesQuery, page: PageQuery[ScalarPosition]) -> ScalarPoints:
        found = [
            (ScalarPosition(iter, *name), point)
            for name, points in self._scalars(series).items()
            for iter, point in points.items()
        ]
        chosen = _page(found, lambda one: one[0], page)
        if page.whole and chosen:
            rest = _page(found, lambda one: one[0], PageQuery(len(found), chosen[-1][0], page.descending))
            chosen += [one for one in rest if one[0].iter == chosen[-1][0].iter]
        return columns_of([((at.metric, at.variant), point) for at, point in chosen])

    async def earliest_points(self, series: SeriesQuery, limit: int, after: int | None = None) -> ScalarPoints:
        found = [
            (point.timestamp, point.iter, *name, point)
            for name, points in self._scalars(series).items()
            for point in points.values()
            if after is None or point.timestamp > after
        ]
        found.sort(key=lambda row: row[:4])
        page = [row for row in found if row[0] <= found[min(limit, len(found)) - 1][0]]
        return columns_of([((metric, variant), point) for *_, metric, variant, point in page])

    async def last_values(self, series: SeriesQuery, n: int) -> dict[Name, list[float]]:
        return {
            name: [points[iter].value for iter in sorted(points)[max(0, len(points) - n) :]]
            for name, points in self._scalars(series).items()
        }

    async def worker_spans(self, series: SeriesQuery) -> list[WorkerSpan]:
        return [
            WorkerSpan(*name, len(times), min(times), max(times))
            for name, points in self._by_worker(series).items()
            if (times := [point.timestamp for point in points])
        ]

    async def worker_means(self, series: SeriesQuery, grid: Grid) -> list[WorkerMeans]:
        found = []
        for name, points in self._by_worker(series).items():
            values: dict[int, list[float]] = {}
            for point in points:
                if grid.start <= point.timestamp <= grid.stop and math.isfinite(point.value):
                    values.setdefault((point.timestamp - grid.start) // grid.step, []).append(point.value)
            steps = sorted(values)
            means = [math.fsum(values[number]) / len(values[number]) for number in steps]
            if steps:
                counts = np.array([len(values[number]) for number in steps], np.int64)
                found.append(WorkerMeans(*name, np.array(steps, np.int64), counts, np.array(means)))
        return found

    def _by_worker(self, series: SeriesQuery) -> dict[tuple[str, str, str], list[Point]]:
        found: dict[tuple[str, str, str], list[Point]] = {}
        for name, points in self._scalars(series).items():
            for point in points.values():
                found.setdefault((*name, point.worker), []).append(point)
        return dict(sorted(found.items()))

    def _lines(self, series: SeriesQuery) -> list[LogLine]:
        return [line for line in self._of(series.owner).logs if selects(series.selection, line.metric, line.variant)]

    async def log_lines(
        self, series: SeriesQuery, page: PageQuery[LogPosition], workers: Collection[str] | None = None
    ) -> list[LogLine]:
        lines = [line for line in self._lines(series) if workers is None or line.worker in workers]
        found = _page(lines, lambda line: line.position, page)
        if page.whole and found:
            rest = _page(lines, lambda line: line.position, PageQuery(len(lines), found[-1].position, page.descending))
            found += [line for line in rest if line.position.timestamp == found[-1].position.timestamp]
            if len(page_of(found)) < len(found):
                same = [line for line in found if line.position.timestamp == found[0].position.timestamp]
                return whole_timestamps_of(page_of(found)) or page_of(same, TIMESTAMP_BYTES)
        return page_of(found)

    async def log_count(self, series: SeriesQuery) -> int:
        return len(self._lines(series))

    async def log_page(self, series: SeriesQuery, page: PageQuery[LogPosition]) -> tuple[list[LogLine], int]:
        return await self.log_lines(series, page), await self.log_count(series)

    async def log_numbered(self, owner: Owner, numbers: Sequence[int]) -> tuple[list[LogLine], int]:
        lines = sorted(self._of(owner).logs, key=lambda line: line.position)
        return page_of([lines[number] for number in numbers if number < len(lines)]), len(lines)

    async def log_number(self, owner: Owner, position: LogPosition) -> int:
        return sum(line.position < position for line in self._of(owner).logs)

    async def log_hits(self, owner: Owner, line_filter: LineFilter, after: LogPosition | None) -> LogHits:
        page = await self.log_lines(SeriesQuery(owner, EventType.LOG), PageQuery(LINES_SEARCHED, after))
        places = line_filter.places(page)
        return LogHits(places, len(page), page[-1].position if page else after, not may_go_on(page, LINES_SEARCHED))

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

    def _samples(self, series: SeriesQuery) -> list[Sample]:
        return [
            sample
            for sample in self._of(series.owner).samples.values()
            if sample.type is series.type and selects(series.selection, sample.metric, sample.variant)
        ]

    async def sample_series(self, series: SeriesQuery) -> list[SampleSeries]:
        found: dict[Name, list[Sample]] = {}
        for sample in self._samples(series):
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
        self, series: SeriesQuery, page: PageQuery[SamplePosition], iterations: Range = EVERYWHERE
    ) -> list[Sample]:
        found = [one for one in self._samples(series) if iterations.least <= one.iter <= iterations.greatest]
        return page_of(_page(found, lambda sample: sample.position, page))

    async def latest_samples(
        self, series: SeriesQuery, iterations: int, after: SamplePosition | None = None
    ) -> list[Sample]:
        ordered = sorted(self._samples(series), key=_newest_first)
        found: list[Sample] = []
        for _, ones in groupby(ordered, key=lambda one: (one.metric, one.variant)):
            by_iter = [list(same) for _, same in groupby(ones, key=lambda one: one.iter)]
            found += [one for same in by_iter[:iterations] for one in same]
        return page_of(one for one in found if after is None or _newest_first(one) > _newest_first(after))

    async def sample_iterations(self, series: SeriesQuery, page: PageQuery[int]) -> list[int]:
        return _page({sample.iter for sample in self._samples(series)}, lambda iter: iter, page)

    async def events_count(self, owner: Owner, types: Sequence[EventType] | None = None) -> int:
        return sum(self._of(owner).count(type) for type in set(EventType if types is None else types))

    async def usage(self, company: str) -> Usage:
        owners = [owner async for owner in self.owners() if owner.company == company]
        found = Usage.of(owners)
        for row, owner in enumerate(owners):
            names = [name for name in await self.series(owner) if name.type is not EventType.LOG]
            for column, type in enumerate(TYPES):
                found.series[row, column] = sum(name.type is type for name in names)
                found.events[row, column] = self._of(owner).count(type)
        found.bytes[:] = found.events
        return found

    def gauges(self) -> Mapping[str, float]:
        return {"batches": len(self._history)}

    async def changes(self, query: ChangesQuery) -> Changes:
        changes = Changes(len(self._history))
        if query.since is None:
            return changes
        if not isinstance(query.since, int):
            return Changes.all_of(len(self._history), query.owners)
        for owner, one in self._history[query.since :]:
            if owner in query.owners:
                known = changes.owners.setdefault(owner, OwnerChanges())
                for series, iterations in one.series.items():
                    known.widen(series, iterations)
                known.log_lines += one.log_lines
                known.everything |= one.everything
        room = query.most
        for owner, known in changes.owners.items():
            room -= len(known.series)
            if room < 0 or known.everything:
                changes.owners[owner] = OwnerChanges(everything=True)
        return changes

    async def watch(self, query: ChangesQuery) -> AsyncGenerator[Changes, None]:
        changes = await self.changes(query)
        yield changes
        while True:
            await self._grown.wait()
            self._grown.clear()
            changes = await self.changes(replace(query, since=changes.cursor))
            if changes.owners:
                yield changes

    async def owners_to_restate(self, *, of_all: bool = False) -> AsyncIterator[Owner]:
        self._untold.clear()
        for owner in sorted(self.unstated):
            yield owner

    async def restated(self, owners: Collection[Owner]) -> None:
        self.unstated.difference_update(set(owners) - self._untold)


def _page(items: Iterable[Any], key: Callable[[Any], Any], page: PageQuery[Any]) -> list[Any]:
    ahead, ordered = lt if page.descending else gt, sorted(items, key=key, reverse=page.descending)
    beyond = (item for item in ordered if page.after is None or ahead(key(item), page.after))
    return list(islice(beyond, page.limit))


def _newest_first(one: Sample | SamplePosition) -> tuple[str, str, int, str]:
    return (one.metric, one.variant, -one.iter, one.key)


def _lines(lines: Sequence[LogLine]) -> Lines:
    """Lines as columns."""
    positions, *columns, received, extras = zip(*lines, strict=True)
    levels, workers, messages, iters, metrics, variants = map(list, columns)
    return Lines(
        np.array([position.timestamp for position in positions], np.int64),
        np.array([position.sequence for position in positions], np.int64),
        np.array(received, np.int64),
        Column.of(levels),
        Column.of(workers),
        messages,
        Column.of(iters),
        Column.of([*zip(metrics, variants, strict=True)]),
        Column.of([*extras]),
    )
