"""Which events of a task and type are due to be deleted: finds them, reads them in parts, and deletes them.

- Log lines are due by their own timestamps, and so are vectors, images and plots.
- Vectors, images and plots can also be due by iterations: those before the newest so many of their series.
- Scalars of a task are due all together, once the newest of them is old enough. If they are thinned, only those points
  are due that do not stay (`stores/events/codec/thinning.py`).

For example, with "2 iterations", of a series with images at the iterations 10, 20, 30 and 40, those at 10 and 20 are
due.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from apiserver.events.changes import Cursor
from apiserver.events.file_urls import urls_in
from apiserver.events.model import EventType, LogPosition, MetricSelection, Owner, Sample, SamplePosition, selection_of
from apiserver.events.queries import EVERYWHERE, PageQuery, Range, SeriesQuery
from apiserver.fileserver.addresses import files_of
from apiserver.operating.retention import tables
from apiserver.operating.retention.bounds import RetentionBounds
from apiserver.operating.retention.tables import Part
from apiserver.operating.retention.thinned import ends_of_thinning, points_that_go
from apiserver.settings.retention_rules import RetentionRule
from apiserver.stores.events.base import EventStore
from apiserver.stores.events.codec.chunks import POINTS_AT_A_TIME
from apiserver.stores.events.codec.names import Name
from apiserver.stores.events.protocols.logs import LogStore
from apiserver.stores.events.protocols.samples import SampleStore

#: Events that are read at once.
_LINES, _SAMPLES = 5000, 200


class Totals(NamedTuple):
    """How many events there are, and the times (epoch ms) of the oldest and the newest."""

    events: int
    oldest: int
    newest: int


@dataclass(frozen=True, slots=True)
class Due:
    """Due events of a task and type: in `ranges` of series and iterations, and older than `before` (None: of any age).

    Each series is in one of the ranges at most.
    """

    owner: Owner
    type: EventType
    before: int | None
    ranges: Sequence[tuple[SeriesQuery, Range]]
    totals: Totals | None = None
    """How many events there are, if that is known without reading them."""
    points: int | None = None
    """To how many points each series is thinned: only the other points are due. None: no thinning."""
    at_once: int = POINTS_AT_A_TIME
    """Points that are read at once to thin series."""
    checksums: dict[Name, int] = field(default_factory=dict)
    """The checksums of series to be thinned, once their points were read (`stores/events/codec/thinning.py`)."""


class PartlyDeleted(Exception):
    """Only some `events` that were due could be deleted."""

    def __init__(self, events: int, why: Exception) -> None:
        super().__init__(f"only {events} were deleted: {why}")
        self.events = events


def everything(owner: Owner, type: EventType) -> Due:
    """All events of a task and type, whether a rule keeps them or not."""
    return Due(owner, type, None, [(SeriesQuery(owner, type, []), EVERYWHERE)])


async def find(
    store: EventStore, owner: Owner, type: EventType, rule: RetentionRule, now: int, bounds: RetentionBounds
) -> Due | None:
    """The events that the rule does not keep, as of `now` (epoch ms); None if there are surely none."""
    series: SeriesQuery = SeriesQuery(owner, type, [])
    if rule.iterations is not None:
        ranges = await _before_the_newest(store, series, rule.iterations, bounds.series)
        return Due(owner, type, None, ranges) if ranges else None
    before = rule.before(now)
    assert before is not None
    if type is EventType.SCALAR:
        stats = await store.scalar_stats(series)
        newest = max([stat.max_timestamp for stat in stats], default=before)
        if newest >= before:
            return None
        if rule.points is not None:
            is_long = any(stat.count > rule.points for stat in stats)
            return (
                Due(owner, type, before, [(series, EVERYWHERE)], points=rule.points, at_once=bounds.points)
                if is_long
                else None
            )
        totals = Totals(sum([stat.count for stat in stats]), min([stat.min_timestamp for stat in stats]), newest)
        return Due(owner, type, before, [(series, EVERYWHERE)], totals)
    if type is EventType.LOG:
        first = await store.log_lines(series, PageQuery(1))
        there_is = bool(first) and first[0].position.timestamp < before
    else:
        there_is = bool(await store.sample_series(series))
    return Due(owner, type, before, [(series, EVERYWHERE)]) if there_is else None


async def _before_the_newest(
    store: SampleStore, series: SeriesQuery, kept: int, together: int
) -> list[tuple[SeriesQuery, Range]]:
    """The series with more than `kept` iterations, and the range of iterations to delete; equal ranges come together.

    For example, hundreds of series with images at the same iterations are deleted by one call.
    """
    names_by_last: dict[int, list[tuple[str, str]]] = {}
    for stats in await store.sample_series(series):
        alone = replace(series, selection=[MetricSelection(stats.metric, (stats.variant,))])
        if stats.count > kept:
            newest = await store.sample_iterations(alone, PageQuery(kept, descending=True))
            if len(newest) == kept and newest[-1] > stats.min_iter:
                names_by_last.setdefault(newest[-1] - 1, []).append((stats.metric, stats.variant))
    return [
        (replace(series, selection=selection_of(names[start : start + together])), Range.of(None, last))
        for last, names in names_by_last.items()
        for start in range(0, len(names), together)
    ]


def parts(store: EventStore, due: Due) -> AsyncGenerator[Part, None]:
    """All that is due, in parts; no part is empty."""
    if due.type is EventType.SCALAR:
        return _points(store, due)
    return _lines(store, due) if due.type is EventType.LOG else _samples(store, due)


async def delete(store: EventStore, due: Due, up_to: Cursor) -> int:
    """Delete what is due up to a cursor; return how many events there were. PartlyDeleted: it failed halfway.

    If events of the type came since the cursor, due events may stay. A series is thinned only if its points are as
    they were read.
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


async def totals(store: EventStore, due: Due) -> Totals | None:
    """The amount of due events, if the store tells it without reading all of them. To thin, points are read once."""
    if due.points is None:
        return due.totals
    return Totals(
        *await ends_of_thinning(store, SeriesQuery(due.owner, due.type), due.points, due.checksums, due.at_once)
    )


async def _points(store: EventStore, due: Due) -> AsyncGenerator[Part, None]:
    series = SeriesQuery(due.owner, due.type)
    if due.points is None:
        found = store.whole_points(series)
    else:
        found = points_that_go(store, series, due.points, due.checksums, due.at_once)
    async for some in found:
        if some:
            yield tables.of_points(some)


async def _lines(store: LogStore, due: Due) -> AsyncGenerator[Part, None]:
    series, before = SeriesQuery(due.owner, due.type), due.before
    after: LogPosition | None = None
    while page := await store.log_lines(series, PageQuery(_LINES, after)):
        after = page[-1].position
        old = [line for line in page if before is None or line.position.timestamp < before]
        if old:
            yield tables.of_lines(old)
        if len(old) < len(page):
            return


async def _samples(store: SampleStore, due: Due) -> AsyncGenerator[Part, None]:
    for series, iterations in due.ranges:
        after: SamplePosition | None = None
        while page := await store.samples(series, PageQuery(_SAMPLES, after), iterations):
            after = page[-1].position
            old = [one for one in page if due.before is None or one.timestamp < due.before]
            if old:
                yield await asyncio.to_thread(tables.of_samples, old)


async def unneeded_files(store: SampleStore, owner: Owner, names: set[str], hosts: Collection[str]) -> set[str]:
    """The files that no image or plot of the task shows. Events show files by URLs on any of the `hosts`.

    The SDK gives the images of a series names that repeat: the files of old ones become those of newer ones.
    """
    left = set(names)
    for type, most in ((EventType.IMAGE, 1000), (EventType.PLOT, 50)):
        after: SamplePosition | None = None
        while left and (page := await store.samples(SeriesQuery(owner, type), PageQuery(most, after))):
            after = page[-1].position
            left -= await asyncio.to_thread(_files, page, hosts)
    return left


def _files(samples: Sequence[Sample], hosts: Collection[str]) -> set[str]:
    return files_of(urls_in(samples), hosts)
