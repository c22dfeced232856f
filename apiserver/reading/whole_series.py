"""All points of scalar series, one series after the other, however many points there are.

Small series are read together: as many as have 16,384 points in all. A larger one is read in pages of so many. For
example, series with 10, 20 and 30,000 points are three reads: the first two together, and two pages of the third.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from apiserver.common import answers
from apiserver.events.model import (
    LAST_NAME,
    BucketAxis,
    EventType,
    Float64Array,
    Int64Array,
    Owner,
    ScalarPoints,
    ScalarPosition,
    ScalarStats,
    Selection,
    selection_of,
)
from apiserver.events.queries import EVERYWHERE, LEAST, PageQuery, Range, SeriesQuery
from apiserver.stores.events.protocols.scalars import ScalarStore

#: Points that are read at once. They are in memory while a client takes them, and there may be many slow clients.
#: As many points as a sealed chunk of the embedded store has: it is decoded once.
AT_ONCE = 2**14
#: Series that are read at once: naming them takes time, too.
_SERIES_AT_ONCE = 1000
#: Bytes of memory that a point takes while it is read, written and sent, about, and a character of a name.
_POINT_BYTES, _NAME_BYTES = 60, 4

Name = tuple[str, str]


@dataclass(slots=True)
class Points:
    """Points of series (metric, variant), one series after the other, each in the order of its iterations."""

    names: Sequence[Name]
    beginnings: Int64Array
    """When the first point of each series was reported."""
    series: npt.NDArray[np.int32]
    """Numbers of names."""
    iters: Int64Array
    timestamps: Int64Array
    values: Float64Array
    workers: list[str] = field(default_factory=list)
    """Who reported each point; empty if nobody asked."""

    def __len__(self) -> int:
        return len(self.iters)

    @property
    def since(self) -> Int64Array:
        """Milliseconds since the first point of the series, 2⁶³ − 1 at most."""
        first = self.beginnings[self.series]
        since = self.timestamps - first
        since[since < 0] = np.iinfo(np.int64).max
        since[self.timestamps < first] = 0
        return since

    def at(self, which: npt.NDArray[Any]) -> Points:
        """The points at `which`: a mask or indices."""
        columns = (column[which] for column in (self.series, self.iters, self.timestamps, self.values))
        points = Points(self.names, self.beginnings, *columns)
        if self.workers:
            points.workers = np.array(self.workers, object)[which].tolist()
        return points


class PointsQuery(NamedTuple):
    """Asks for the points of series in a range of an axis."""

    owner: Owner
    selection: Selection = ()
    axis: BucketAxis = BucketAxis.ITER
    range: Range = EVERYWHERE
    workers: bool = False
    """Whether to tell who reported each point."""


async def walk(
    store: ScalarStore, asked: PointsQuery, *, first: bool = True, at_once: int = AT_ONCE
) -> AsyncGenerator[Points, None]:
    """The points, up to about `at_once` at a time. They count for the answer, which is sent meanwhile.

    Points that are reported meanwhile may be among them. `first`: nothing of the answer was sent before.
    """
    stats = await store.scalar_stats(SeriesQuery(asked.owner, EventType.SCALAR, asked.selection))
    for together in _together([stat for stat in stats if _may_have(stat, asked)], at_once):
        whole = len(together) > 1
        beginnings = {(stat.metric, stat.variant): stat.min_timestamp for stat in together}
        series = SeriesQuery(asked.owner, EventType.SCALAR, selection_of(beginnings))
        after, last = None, max([stat.max_iter for stat in together])
        if asked.axis is BucketAxis.ITER:
            after, last = _before(asked.range.least), min(last, asked.range.greatest)
        while True:
            read = partial(_page, store, series, after, at_once, whole=whole)
            page = await answers.held_page(read, _size_of, first=first)
            first = False
            if not len(page.iters):
                break
            after = _last(page)
            ended = whole or after.iter >= last
            points = _in_range(_by_series(page, beginnings, workers=asked.workers), asked)
            del page
            if len(points):
                yield points
            if ended:
                break


def _size_of(page: ScalarPoints) -> int:
    names = sum([len(metric) + len(variant) for metric, variant in page.names])
    return _POINT_BYTES * len(page.iters) + _NAME_BYTES * names


def _may_have(stats: ScalarStats, asked: PointsQuery) -> bool:
    least, greatest = {
        BucketAxis.ITER: (stats.min_iter, stats.max_iter),
        BucketAxis.TIMESTAMP: (stats.min_timestamp, stats.max_timestamp),
        BucketAxis.DURATION: (0, stats.max_timestamp - stats.min_timestamp),
    }[asked.axis]
    return least <= asked.range.greatest and greatest >= asked.range.least


def _together(stats: Sequence[ScalarStats], at_once: int) -> Iterator[list[ScalarStats]]:
    """The series in groups that are read together."""
    together: list[ScalarStats] = []
    points = 0
    for stat in stats:
        if together and (points + stat.count > at_once or len(together) == _SERIES_AT_ONCE):
            yield together
            together, points = [], 0
        together.append(stat)
        points += stat.count
    if together:
        yield together


def _before(iter: int) -> ScalarPosition | None:
    return None if iter == LEAST else ScalarPosition(iter - 1, LAST_NAME, LAST_NAME)


def _last(points: ScalarPoints) -> ScalarPosition:
    return ScalarPosition(int(points.iters[-1]), *points.names[int(points.series[-1])])


async def _page(
    store: ScalarStore, series: SeriesQuery, after: ScalarPosition | None, at_once: int, *, whole: bool
) -> ScalarPoints:
    """A page of one series, or with `whole` all points of several."""
    page = await store.scalar_points(series, PageQuery(at_once, after, may_be_shorter=not whole))
    pages = [page]
    while whole and len(page.iters) >= at_once:  # they have grown since they were counted
        page = await store.scalar_points(series, PageQuery(at_once, _last(page)))
        pages.append(page)
    return pages[0] if len(pages) == 1 else _joined(pages)


def _joined(pages: list[ScalarPoints]) -> ScalarPoints:
    names = list(dict.fromkeys(name for page in pages for name in page.names))
    numbers = {name: n for n, name in enumerate(names)}
    series = [np.array([numbers[name] for name in page.names], np.int32)[page.series] for page in pages]
    return ScalarPoints(
        names,
        np.concatenate(series),
        np.concatenate([page.iters for page in pages]),
        np.concatenate([page.timestamps for page in pages]),
        np.concatenate([page.values for page in pages]),
        [worker for page in pages for worker in page.workers],
        np.empty(0, np.int64),
    )


def _by_series(page: ScalarPoints, beginnings: dict[Name, int], *, workers: bool) -> Points:
    names = sorted(page.names)
    first = np.array([beginnings[name] for name in names], np.int64)
    rank = {name: n for n, name in enumerate(names)}
    series = np.array([rank[name] for name in page.names], np.int32)[page.series]
    told = page.workers if workers else []
    points = Points(names, first, series, page.iters, page.timestamps, page.values, told)
    return points if len(names) == 1 else points.at(np.argsort(series, kind="stable"))


def _in_range(points: Points, asked: PointsQuery) -> Points:
    if asked.range == EVERYWHERE:
        return points
    x = {
        BucketAxis.ITER: points.iters,
        BucketAxis.TIMESTAMP: points.timestamps,
        BucketAxis.DURATION: points.since,
    }[asked.axis]
    return points.at((x >= asked.range.least) & (x <= asked.range.greatest))
