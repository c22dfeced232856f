"""Which events of a task and type are due to be deleted: finds them, reads them in parts, and deletes them.

- Log lines are due by their own timestamps, and so are vectors, images and plots.
- Vectors, images and plots can also be due by iterations: those before the newest so many of their series.
- Scalars of a task are due all together, once the newest of them is old enough. If they are thinned, only those points
  are due that do not stay (`stores/events/columns/thinning.py`).

For example, with "2 iterations", of a series with images at the iterations 10, 20, 30 and 40, those at 10 and 20 are
due.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from apiserver.data.tables import Batch, Column, Kind, Repeated, Values
from apiserver.events.changes import Cursor
from apiserver.events.file_urls import urls_in
from apiserver.events.model import (
    SAMPLE_TYPES,
    BucketAxis,
    EventType,
    Int64Array,
    LogLine,
    LogPosition,
    MetricSelection,
    Owner,
    Sample,
    SamplePosition,
    ScalarStats,
    selection_of,
)
from apiserver.events.queries import EVERYWHERE, CurvesQuery, PageQuery, Range, SeriesQuery
from apiserver.files.addresses import files_of
from apiserver.retention_rules import RetentionRule
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.columns.chunks import POINTS_AT_A_TIME
from apiserver.stores.events.columns.names import Name
from apiserver.stores.events.columns.points import NO_CURVE, Points, TimedCurve, concat, take
from apiserver.stores.events.columns.thinning import Thinning, checksum, known_ends
from apiserver.stores.events.columns.whole import WholePoints
from apiserver.stores.events.parts import in_parts

#: Events that are read at once.
_LINES, _SAMPLES = 5000, 200
#: Series that are read or deleted at once.
_TOGETHER = 500

_SERIES = (Column("metric", Kind.TEXT), Column("variant", Kind.TEXT), Column("iter", Kind.INT))
_SAMPLE = (*_SERIES, Column("key", Kind.TEXT), Column("timestamp", Kind.TIME), Column("document", Kind.JSON))
#: The columns of each type in an archive.
COLUMNS: dict[EventType, tuple[Column, ...]] = {
    EventType.SCALAR: (
        *(*_SERIES, Column("timestamp", Kind.TIME), Column("value", Kind.FLOAT)),
        *(Column("worker", Kind.TEXT), Column("received", Kind.TIME)),
    ),
    EventType.LOG: (
        *(Column("timestamp", Kind.TIME), Column("sequence", Kind.INT), Column("worker", Kind.TEXT)),
        *(Column("level", Kind.TEXT), Column("msg", Kind.TEXT), *_SERIES),
        *(Column("received", Kind.TIME), Column("extra", Kind.JSON)),
    ),
    **dict.fromkeys(SAMPLE_TYPES, _SAMPLE),
}


class Totals(NamedTuple):
    """How many events there are, and the times (epoch ms) of the oldest and the newest."""

    events: int
    oldest: int
    newest: int


@dataclass(frozen=True, slots=True)
class Due:
    """Events of a task and type: those of some series in some iterations that are older than `before` (None: all).

    Each series is in one of the ranges at most.
    """

    owner: Owner
    type: EventType
    before: int | None
    ranges: Sequence[tuple[SeriesQuery, Range]]
    totals: Totals | None = None
    """What there is, if that is known without reading it."""
    points: int | None = None
    """To how many points each series is thinned. Then only those are due that do not stay."""
    checksums: dict[Name, int] = field(default_factory=dict)
    """Of the points of each series that is to be thinned, once they were read (`stores/events/columns/thinning.py`)."""

    def test(self) -> Callable[[Sample], bool]:
        """Tells of a sample of the task and type whether it is due; quick also for many series."""
        whole = next((iterations for series, iterations in self.ranges if not series.selection), None)
        of_series = {
            (wanted.metric, variant): iterations
            for series, iterations in self.ranges
            for wanted in series.selection
            for variant in wanted.variants
        }

        def is_due(sample: Sample) -> bool:
            iterations = of_series.get((sample.metric, sample.variant), whole)
            is_old = self.before is None or sample.timestamp < self.before
            return is_old and iterations is not None and iterations.least <= sample.iter <= iterations.greatest

        return is_due


class PartlyDeleted(Exception):
    """Only some `events` that were due could be deleted."""

    def __init__(self, events: int, why: Exception) -> None:
        super().__init__(f"only {events} were deleted: {why}")
        self.events = events


@dataclass(slots=True)
class Part:
    """Some events that are due, as a batch of a table."""

    batch: Batch
    bytes: int
    """Of texts and documents."""
    oldest: int
    newest: int
    urls: set[str] = field(default_factory=set)
    """Of the files that they show."""


def everything(owner: Owner, type: EventType) -> Due:
    """All events of a task and type, whether a rule keeps them or not."""
    return Due(owner, type, None, [(SeriesQuery(owner, type, []), EVERYWHERE)])


async def find(store: EventStore, owner: Owner, type: EventType, rule: RetentionRule, now: int) -> Due | None:
    """What the rule does not keep, as of `now` (epoch ms); None if that is surely nothing."""
    series: SeriesQuery = SeriesQuery(owner, type, [])
    if rule.iterations is not None:
        ranges = await _before_the_newest(store, series, rule.iterations)
        return Due(owner, type, None, ranges) if ranges else None
    before = rule.before(now)
    assert before is not None
    if type is EventType.SCALAR:
        stats = await store.scalar_stats(series)
        newest = max([one.max_timestamp for one in stats], default=before)
        if newest >= before:
            return None
        if rule.points is not None:
            is_long = any(one.count > rule.points for one in stats)
            return Due(owner, type, before, [(series, EVERYWHERE)], points=rule.points) if is_long else None
        totals = Totals(sum([one.count for one in stats]), min([one.min_timestamp for one in stats]), newest)
        return Due(owner, type, before, [(series, EVERYWHERE)], totals)
    if type is EventType.LOG:
        first = await store.log_lines(series, PageQuery(1))
        there_is = bool(first) and first[0].position.timestamp < before
    else:
        there_is = bool(await store.sample_series(series))
    return Due(owner, type, before, [(series, EVERYWHERE)]) if there_is else None


async def _before_the_newest(store: EventStore, series: SeriesQuery, kept: int) -> list[tuple[SeriesQuery, Range]]:
    """The series that have more iterations than are `kept`, and those before them: series with the same ones together.

    For example, hundreds of series with images at the same iterations are deleted by one call.
    """
    found: dict[int, list[tuple[str, str]]] = {}
    for one in await store.sample_series(series):
        alone = replace(series, selection=[MetricSelection(one.metric, (one.variant,))])
        if one.count > kept:
            newest = await store.sample_iterations(alone, PageQuery(kept, descending=True))
            if len(newest) == kept and newest[-1] > one.min_iter:
                found.setdefault(newest[-1] - 1, []).append((one.metric, one.variant))
    return [
        (replace(series, selection=selection_of(names[start : start + _TOGETHER])), Range.of(None, last))
        for last, names in found.items()
        for start in range(0, len(names), _TOGETHER)
    ]


def parts(store: EventStore, due: Due) -> AsyncGenerator[Part, None]:
    """All that is due, in parts; no part is empty."""
    if due.type is EventType.SCALAR:
        return _points(store, due) if due.points is None else _points_that_go(store, due)
    return _lines(store, due) if due.type is EventType.LOG else _samples(store, due)


async def delete(store: EventStore, due: Due, up_to: Cursor) -> int:
    """Delete what is due up to a cursor; return how many events there were. PartlyDeleted: it failed halfway.

    If events of the type came since, some that are due may stay, or all of them. Only those series are thinned whose
    points were read, and are still the same.
    """
    if due.type is EventType.SCALAR:
        if due.points is not None:
            return await store.thin_scalars(SeriesQuery(due.owner, due.type), due.points, due.checksums)
        return await store.delete_scalars(due.owner, up_to)
    if due.type is EventType.LOG:
        return await store.delete_logs(SeriesQuery(due.owner, due.type), due.before, (), up_to)
    deleted = 0
    for series, iterations in due.ranges:
        try:
            deleted += await store.delete_samples(series, iterations, due.before, up_to)
        except Exception as error:
            if deleted:
                raise PartlyDeleted(deleted, error) from error
            raise
    return deleted


async def _points(store: EventStore, due: Due) -> AsyncGenerator[Part, None]:
    async for some in store.whole_points(SeriesQuery(due.owner, due.type)):
        if some:
            yield _part_of_points(some)


class _Thinned:
    """A series that is to be thinned: what is known of it once all its points were read, in parts."""

    def __init__(self, thinning: Thinning) -> None:
        self._thinning = thinning
        self._kept: list[TimedCurve] = []
        self.stay: Int64Array = NO_CURVE.iters
        """The iterations that stay."""
        self.checksum = 0
        self.gone = 0
        """How many points go."""
        self.oldest, self.newest = 2**63 - 1, -(2**63)
        """The times of those that go."""

    def read(self, points: Points) -> None:
        """Read the next part."""
        self.checksum = checksum(points, self.checksum)
        self._kept.append(self._thin(TimedCurve(points.iters, points.values, points.timestamps)))

    def end(self) -> None:
        """All parts were read."""
        self.stay = self._thin(concat(self._kept)).iters

    def _thin(self, some: TimedCurve) -> TimedCurve:
        kept = self._thinning.thinned(some)
        times = some.timestamps[~np.isin(some.iters, kept.iters)]
        if len(times):
            self.gone += len(times)
            self.oldest, self.newest = min(self.oldest, int(times.min())), max(self.newest, int(times.max()))
        return kept


async def totals_of_thinning(store: EventStore, due: Due) -> Totals:
    """What goes when series are thinned. Their points are read once."""
    events, oldest, newest = 0, 2**63 - 1, -(2**63)
    async for series in _thinned(store, due):
        for one in series.values():
            events += one.gone
            oldest, newest = min(oldest, one.oldest), max(newest, one.newest)
    return Totals(events, oldest, newest)


async def _points_that_go(store: EventStore, due: Due) -> AsyncGenerator[Part, None]:
    """The points that do not stay when series are thinned. They are read twice: what stays is known at the end."""
    async for series in _thinned(store, due):
        stay = {name: one.stay for name, one in series.items()}
        async for part in store.whole_points(SeriesQuery(due.owner, due.type, selection_of(series))):
            if gone := await asyncio.to_thread(_without, part, stay):
                yield _part_of_points(gone)


async def _thinned(store: EventStore, due: Due) -> AsyncGenerator[dict[Name, _Thinned], None]:
    """The series with too many points, some at a time, once all their points were read."""
    assert due.points is not None
    stats = await store.scalar_stats(SeriesQuery(due.owner, due.type), spread=True)
    long = [one for one in stats if one.count > due.points]
    for some in in_parts(long, lambda one: one.count, POINTS_AT_A_TIME):
        thinnings = {(one.metric, one.variant): await _thinning(store, one, due.points) for one in some}
        series: dict[Name, _Thinned] = {}
        async for part in store.whole_points(SeriesQuery(due.owner, due.type, selection_of(thinnings))):
            await asyncio.to_thread(_read, part, thinnings, series)
        await asyncio.to_thread(_end, series.values())
        due.checksums.update({name: one.checksum for name, one in series.items()})
        if series:
            yield series


def _read(
    part: Sequence[WholePoints], thinnings: Mapping[Name, Thinning], series: MutableMapping[Name, _Thinned]
) -> None:
    for name, points, _ in part:
        series.setdefault(name, _Thinned(thinnings[name])).read(points)


def _end(series: Iterable[_Thinned]) -> None:
    for one in series:
        one.end()


async def _thinning(store: EventStore, stats: ScalarStats, points: int) -> Thinning:
    ends = known_ends(stats)
    if ends is None:
        ends = await store.curve_ends(CurvesQuery([stats.owner], stats.metric, stats.variant, BucketAxis.ITER))
    return Thinning.of(stats, ends or (stats.min_iter, stats.max_iter), points)  # it has no ends if it is gone since


def _without(some: Sequence[WholePoints], stay: Mapping[Name, Int64Array]) -> list[WholePoints]:
    """The points that do not stay; a series without any is left out."""
    goes = [~np.isin(one.points.iters, stay.get(one.series, one.points.iters)) for one in some]
    return [one._replace(points=take(one.points, which)) for one, which in zip(some, goes, strict=True) if which.any()]


def _part_of_points(some: Sequence[WholePoints]) -> Part:
    times = [one.points.timestamps for one in some]
    oldest, newest = min(int(of.min()) for of in times), max(int(of.max()) for of in times)
    return Part(_batch_of_points(some), 0, oldest, newest)


def _batch_of_points(some: Sequence[WholePoints]) -> Batch:
    lengths = [len(one.points.iters) for one in some]
    codes = np.repeat(np.arange(len(some), dtype=np.int32), lengths)
    names: list[str] = []
    workers = []
    for one in some:
        numbers, places = np.unique(one.points.workers, return_inverse=True)
        workers.append(places.astype(np.int32) + np.int32(len(names)))
        names += [one.workers[number] for number in numbers.tolist()]
    columns: list[Values] = [
        Repeated(codes, [one.series[0] for one in some]),
        Repeated(codes, [one.series[1] for one in some]),
        np.concatenate([one.points.iters for one in some]),
        np.concatenate([one.points.timestamps for one in some]),
        np.concatenate([one.points.values for one in some]),
        Repeated(np.concatenate(workers), names),
        np.concatenate([one.points.received for one in some]),
    ]
    return Batch(sum(lengths), columns)


async def _lines(store: EventStore, due: Due) -> AsyncGenerator[Part, None]:
    series, before = SeriesQuery(due.owner, due.type), due.before
    after: LogPosition | None = None
    while page := await store.log_lines(series, PageQuery(_LINES, after)):
        after = page[-1].position
        old = [line for line in page if before is None or line.position.timestamp < before]
        if old:
            size = sum([len(line.message) for line in old])
            yield Part(_batch_of_lines(old), size, old[0].position.timestamp, old[-1].position.timestamp)
        if len(old) < len(page):
            return


def _batch_of_lines(lines: Sequence[LogLine]) -> Batch:
    columns: list[Values] = [
        [line.position.timestamp for line in lines],
        [line.position.sequence for line in lines],
        [line.worker for line in lines],
        [line.level for line in lines],
        [line.message for line in lines],
        [line.metric for line in lines],
        [line.variant for line in lines],
        [line.iter for line in lines],
        [line.received for line in lines],
        [line.extra for line in lines],
    ]
    return Batch(len(lines), columns)


async def _samples(store: EventStore, due: Due) -> AsyncGenerator[Part, None]:
    for series, iterations in due.ranges:
        after: SamplePosition | None = None
        while page := await store.samples(series, PageQuery(_SAMPLES, after), iterations):
            after = page[-1].position
            old = [one for one in page if due.before is None or one.timestamp < due.before]
            if old:
                times = [one.timestamp for one in old]
                urls = await asyncio.to_thread(urls_in, old)
                size = sum([len(one.document) for one in old])
                yield Part(_batch_of_samples(old), size, min(times), max(times), urls)


def _batch_of_samples(samples: Sequence[Sample]) -> Batch:
    columns: list[Values] = [
        [one.metric for one in samples],
        [one.variant for one in samples],
        [one.iter for one in samples],
        [one.key for one in samples],
        [one.timestamp for one in samples],
        [one.document for one in samples],
    ]
    return Batch(len(samples), columns)


async def files_to_delete(store: EventStore, due: Due, names: set[str], hosts: Collection[str]) -> set[str]:
    """Those of the files that no remaining image or plot of the task shows, by any URL on one of the `hosts`.

    The SDK gives the images of a series names that repeat: the files of old ones become those of newer ones.
    """
    left, is_due = set(names), due.test()
    for type, most in ((EventType.IMAGE, 1000), (EventType.PLOT, 50)):
        after: SamplePosition | None = None
        while left and (page := await store.samples(SeriesQuery(due.owner, type), PageQuery(most, after))):
            after = page[-1].position
            left -= await asyncio.to_thread(_files, page, is_due if type is due.type else None, hosts)
    return left


def _files(samples: Sequence[Sample], goes: Callable[[Sample], bool] | None, hosts: Collection[str]) -> set[str]:
    """The files of the samples that stay."""
    stay = samples if goes is None else [one for one in samples if not goes(one)]
    return files_of(urls_in(stay), hosts)
