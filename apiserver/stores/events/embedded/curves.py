"""Reads the same scalar series of many owners by one read, because one for each owner takes longer than its points.

For example, of owners A, B and C, all but B have the series. There are two views, and the second of the three rows of
means is all NaN.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt

from apiserver.common import answers
from apiserver.events.aggregates import CurvesInBuckets, Neighbours
from apiserver.events.model import SINGLE_VALUE_ITERATION, BucketAxis, EventType, Owner
from apiserver.events.queries import CommonBuckets, CurvesQuery
from apiserver.stores.events.codec.bucketing import nearest_bucket, put_into
from apiserver.stores.events.codec.extremes import Extremes
from apiserver.stores.events.codec.points import NO_CURVE, Curve, ends_of_all
from apiserver.stores.events.embedded.bounds import EmbeddedBounds
from apiserver.stores.events.embedded.buckets import curve_over, some_buckets
from apiserver.stores.events.embedded.hot import HotPoints
from apiserver.stores.events.embedded.names import CODES
from apiserver.stores.events.embedded.scalars import stats_of
from apiserver.stores.events.embedded.series import NOT_MERGED, MergedSeries, Series
from apiserver.stores.events.embedded.unsettled import in_parts
from apiserver.stores.events.embedded.walks import SeriesWalk

#: CROSS JOIN keeps the tables in this order, so that each is searched by its key.
_FIND = """WITH wanted (place, company, name, is_model) AS (VALUES {})
SELECT place, series.id, chunk_end, runs, stats FROM wanted
CROSS JOIN owners USING (company, name, is_model)
CROSS JOIN series ON owner = owners.id AND type = ? AND metric = ? AND variant = ?
CROSS JOIN scalars ON scalars.series = series.id"""

#: The stats of a series that are the ends of its curve.
_ENDS: Mapping[BucketAxis, tuple[str, str]] = {
    BucketAxis.ITER: ("min_iter", "max_iter"),
    BucketAxis.TIMESTAMP: ("first_time", "last_time"),
    BucketAxis.DURATION: ("first_time", "last_time"),
}


def views_of(
    conn: sqlite3.Connection, asked: CurvesQuery, hot: Sequence[Mapping[Owner, HotPoints]], bounds: EmbeddedBounds
) -> list[Series]:
    """The series of each owner that has it; `hot` has their points in each memtable, oldest first."""
    merged, name = dict(_merged(conn, asked, bounds.owners_a_query)), (asked.metric, asked.variant)
    views = []
    for place, owner in enumerate(asked.owners):
        recent = [table[owner] for table in hot if owner in table]
        if recent or place in merged:
            views.append(Series(conn, owner, name, merged.get(place, NOT_MERGED), recent, bounds))
    return views


def _merged(conn: sqlite3.Connection, asked: CurvesQuery, at_once: int) -> Iterator[tuple[int, MergedSeries]]:
    """What was merged of each owner's series, by the owner's place."""
    name = (CODES[EventType.SCALAR], asked.metric, asked.variant)
    owners = enumerate(asked.owners)
    while some := [(place, one.company, one.id, int(one.is_model)) for place, one in islice(owners, at_once)]:
        find = _FIND.format(",".join(["(?, ?, ?, ?)"] * len(some)))
        for place, *row in conn.execute(find, [value for wanted in some for value in wanted] + list(name)):
            yield place, MergedSeries(*row)


def ends(series: Sequence[Series], axis: BucketAxis) -> tuple[int, int] | None:
    """The least and the greatest x of all series together, without single values."""
    rows = stats_of(series)
    first, last = rows["min_iter"], rows["max_iter"]
    has_single = (first <= SINGLE_VALUE_ITERATION) & (last >= SINGLE_VALUE_ITERATION)
    ends = list(zip(*(rows[name][~has_single].tolist() for name in _ENDS[axis]), strict=True))
    of_curve = BucketAxis.ITER if axis is BucketAxis.ITER else BucketAxis.TIMESTAMP
    for number in np.flatnonzero(has_single & (first < last)).tolist():
        x = curve_over(series[number], of_curve).iters
        ends.append((int(x[0]), int(x[-1])))
    return ends_of_all(ends, axis)


def in_buckets(series: Sequence[Series], asked: CurvesQuery, buckets: CommonBuckets) -> CurvesInBuckets:
    """All curves in the buckets."""
    answers.will_read(8 * (len(asked.owners) + 2) * buckets.count)
    curves = CurvesInBuckets.empty(len(asked.owners), buckets.count)
    extremes = Extremes(curves, buckets)
    places = _places(series, asked)
    for part in some_buckets(series, buckets.of(asked), extremes=extremes):
        put_into(curves, buckets, places, part)
    extremes.put()
    return curves


def _places(series: Sequence[Series], asked: CurvesQuery) -> npt.NDArray[np.intp]:
    """The place of each view's owner in the query."""
    places = {owner: place for place, owner in enumerate(asked.owners)}
    return np.array([places[one.owner] for one in series], np.intp)


def neighbours(series: Sequence[Series], asked: CurvesQuery, buckets: CommonBuckets, *, before: bool) -> Neighbours:
    """The nearest bucket of each owner outside."""
    answers.will_read(16 * len(asked.owners))
    neighbours = Neighbours.empty(len(asked.owners))
    places = _places(series, asked)
    for which in in_parts(series):
        for number in which.tolist():
            one_series, at = series[number], places[number]
            if asked.axis is BucketAxis.ITER and asked.smoothing is None:
                curve = _near(one_series, buckets, before=before)
            else:
                curve = curve_over(one_series, asked.axis, asked.smoothing)
            neighbours.numbers[at], neighbours.means[at] = nearest_bucket(*curve, buckets, before=before)
    return neighbours


def _near(series: Series, buckets: CommonBuckets, *, before: bool) -> Curve:
    """The points of the nearest bucket outside that has a finite value, perhaps with others; none if there is none."""
    start = buckets.range.least - 1 if before else buckets.range.greatest + 1
    while True:
        walk = SeriesWalk(series, start, descending=before)
        walk.fill(1)
        points = walk.points()
        finite = np.flatnonzero(np.isfinite(points.values) & (points.iters != SINGLE_VALUE_ITERATION))
        if len(finite):
            first = int(points.iters[finite[0]]) // buckets.width * buckets.width
            curve = series.curve(first, first + buckets.width - 1)
            kept = curve.iters != SINGLE_VALUE_ITERATION
            return Curve(curve.iters[kept], curve.values[kept])
        if walk.exhausted:
            return NO_CURVE
        start = walk.frontier + (-1 if before else 1)
