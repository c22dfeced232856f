"""Buckets of scalar series: one request finds how long the series are, and another one the buckets of all of them.

Some series are read as points, and bucketed here: those with numbers that Elasticsearch's aggregations cannot count
exactly, as they count in doubles, and those with more buckets than Elasticsearch makes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import numpy as np

from apiserver import answers
from apiserver.events.aggregates import Aggregate, Aggregates, Buckets, columns_for, joined, made_of, of_points
from apiserver.events.model import SINGLE_VALUE_ITERATION, BucketAxis, Float64Array, Int64Array, JsonObject
from apiserver.events.queries import GREATEST, LEAST, BucketQuery, CommonBuckets, Range, SeriesQuery
from apiserver.stores.events.base import bucket_x, nearest_bucket, since_first
from apiserver.stores.events.elasticsearch import paging
from apiserver.stores.events.elasticsearch.aggregating import SeriesAggs, aggregate
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.names import index_of, owner_key
from apiserver.stores.events.elasticsearch.queries import BARE, inside, of_series, ordered, without
from apiserver.stores.events.elasticsearch.scalars import value_of
from apiserver.stores.events.elasticsearch.series import MOST_BUCKETS, Series, SeriesIndex
from apiserver.stores.events.elasticsearch.stats import EXACT, exact, extent

#: What nodes call the aggregates that they compute.
_OF_NODES = {Aggregate.MEAN: "avg", Aggregate.MIN: "min", Aggregate.MAX: "max"}
#: Bytes of memory that a point takes, as x and value.
_POINT_BYTES = 16
_ENDS = frozenset([Aggregate.FIRST, Aggregate.LAST])
_A_CURVE = without({"term": {"iter": SINGLE_VALUE_ITERATION}})


@dataclass(slots=True, frozen=True)
class _Curve:
    """A series to bucket: its number of points, its ends on the axis, and how wide its buckets are."""

    series: Series
    count: int
    least: int
    greatest: int
    interval: int
    needs_all_points: bool

    @property
    def most(self) -> int:
        """How many buckets it may have at most."""
        return min(self.count, self.greatest // self.interval - self.least // self.interval + 1)

    @property
    def by_nodes(self) -> bool:
        """Whether Elasticsearch can bucket it."""
        exact = max(-self.least, self.greatest, self.interval) < EXACT
        return exact and self.most <= MOST_BUCKETS and not self.needs_all_points


@dataclass(slots=True, frozen=True)
class Request:
    """The series that are asked for, and how to bucket them."""

    series: SeriesQuery
    buckets: BucketQuery

    @property
    def axis(self) -> str:
        """The field by which points are ordered."""
        return (BucketAxis.ITER if self.buckets.axis is BucketAxis.ITER else BucketAxis.TIMESTAMP).value

    @property
    def needs_all_points(self) -> bool:
        """Whether a point's bucket or its value depends on other points, which nodes cannot tell."""
        return self.buckets.smoothing is not None or self.buckets.axis is BucketAxis.DURATION

    @property
    def inside(self) -> list[JsonObject]:
        """The conditions for points that are bucketed."""
        return [_A_CURVE, *inside(self.axis, self.buckets.range)]

    @property
    def order(self) -> list[JsonObject]:
        """The order of points along the axis."""
        return ordered(list(dict.fromkeys((self.axis, "iter"))))


async def buckets(cluster: Cluster, known: SeriesIndex, request: Request) -> list[Buckets]:
    """The buckets of each series, as `EventStore.scalar_buckets` describes them."""
    index, routing = index_of(cluster.prefix, request.series), owner_key(request.series.owner)
    curves = await _curves(cluster, known, request)
    answers.will_read(request.buckets.size(len(curves), sum(curve.most for curve in curves)))
    aggs = {interval: _aggs(request, interval) for interval in {curve.interval for curve in curves}}
    wanted = [SeriesAggs(curve.series, aggs[curve.interval], curve.most) for curve in curves if curve.by_nodes]
    found = await aggregate(cluster, index, routing, wanted, *request.inside)
    return list(
        await asyncio.gather(
            *(
                _of_nodes(cluster, request, curve, found.get(curve.series.key))
                if curve.by_nodes
                else _of_points(cluster, request, curve)
                for curve in curves
            )
        )
    )


async def ends(cluster: Cluster, known: SeriesIndex, request: Request) -> list[tuple[int, int]]:
    """The least and the greatest x of each series that has a curve."""
    return [(curve.least, curve.greatest) for curve in await _curves(cluster, known, request)]


async def nearest(
    cluster: Cluster, known: SeriesIndex, request: Request, common: CommonBuckets, *, before: bool
) -> list[tuple[float, float]]:
    """The nearest bucket of each series outside of the common ones: its number, and its mean."""
    found = []
    for curve in await _curves(cluster, known, request):
        if curve.needs_all_points:
            x, values = await _all_points(cluster, request, curve)
        else:
            x, values = await _points_near(cluster, request, curve, common, before=before)
        found.append(nearest_bucket(x, values, common, before=before))
    return found


async def _points_near(
    cluster: Cluster, request: Request, curve: _Curve, common: CommonBuckets, *, before: bool
) -> tuple[Int64Array, Float64Array]:
    """The points of the nearest bucket outside that has a finite value."""
    least, greatest = common.range.least, common.range.greatest
    if least == LEAST if before else greatest == GREATEST:
        return np.empty(0, np.int64), np.empty(0)
    side = Range(greatest=least - 1) if before else Range(least=greatest + 1)
    query = {
        "query": of_series([curve.series.key], _A_CURVE, *inside(request.axis, side), {"exists": {"field": "value"}}),
        "sort": ordered([request.axis], descending=before),
        "size": 1,
    }
    index, routing = index_of(cluster.prefix, request.series), owner_key(request.series.owner)
    hits = (await cluster.search(index, {**BARE, **query}, routing=routing))["hits"]["hits"]
    if not hits:
        return np.empty(0, np.int64), np.empty(0)
    start = hits[0]["sort"][0] // common.width * common.width
    bucket = Range(start, start + common.width - 1)
    return await _points(cluster, request, curve, _A_CURVE, *inside(request.axis, bucket))


async def _curves(cluster: Cluster, known: SeriesIndex, request: Request) -> list[_Curve]:
    """Every series that has a curve, not only a single value, sorted."""
    index, routing = index_of(cluster.prefix, request.series), owner_key(request.series.owner)
    series = await known.likely(request.series)
    ends = extent(request.axis)
    low, high = ends
    found = await aggregate(cluster, index, routing, [SeriesAggs(one, ends) for one in series], _A_CURVE)
    curves = []
    for one in series:
        if one.key in found:
            count = found[one.key]["doc_count"]
            least, greatest = [
                await exact(cluster, index, routing, one, found[one.key], name, _A_CURVE) for name in (low, high)
            ]
            if request.buckets.axis is BucketAxis.DURATION:
                least, greatest = 0, min(greatest - least, GREATEST)
            width = request.buckets.width(count, least, greatest)
            curves.append(_Curve(one, count, least, greatest, width, request.needs_all_points))
    return curves


def _aggs(request: Request, interval: int) -> JsonObject:
    histogram = {"field": request.axis, "interval": interval, "min_doc_count": 1}
    each: JsonObject = {"value": {"stats": {"field": "value"}}}
    if request.buckets.aggregates <= {Aggregate.COUNT, Aggregate.MEAN}:
        each = {"value": {"avg": {"field": "value"}}}
    if request.buckets.aggregates & _ENDS:
        each |= extent(request.axis)
    return {"buckets": {"histogram": histogram, "aggs": each}}


async def _of_nodes(cluster: Cluster, request: Request, curve: _Curve, found: JsonObject | None) -> Buckets:
    """The buckets that nodes made. First and last values are read by another search, as nodes take longer for that."""
    rows = found["buckets"]["buckets"] if found is not None else []
    wanted = request.buckets.aggregates
    values: Aggregates = {}
    if Aggregate.COUNT in wanted:
        values[Aggregate.COUNT] = np.array([row["doc_count"] for row in rows], np.int64)
    if Aggregate.NOT_FINITE in wanted:  # these have no field `value`
        values[Aggregate.NOT_FINITE] = np.array([row["doc_count"] - row["value"]["count"] for row in rows], np.int64)
    for one in wanted & _OF_NODES.keys():
        name = _OF_NODES[one]
        read: list[float | None] = [row["value"].get(name, row["value"].get("value")) for row in rows]
        values[one] = np.array(read, np.float64)
    if wanted & _ENDS:
        ends = await _ends(cluster, request, curve, rows)
        if ends is None:
            return await _of_points(cluster, request, curve)
        values |= {one: column for one, column in ends.items() if one in wanted}
    x = np.array([row["key"] for row in rows], np.float64).astype(np.int64)
    return Buckets(curve.series.metric, curve.series.variant, x, values)


async def _ends(cluster: Cluster, request: Request, curve: _Curve, rows: list[JsonObject]) -> Aggregates | None:
    """The first and the last value of each bucket; None if one of them was overwritten or deleted meanwhile."""
    first, last = (np.array([row[name]["value"] for row in rows], np.int64) for name in extent(request.axis))
    wanted = np.union1d(first, last)
    if not len(wanted):
        return dict.fromkeys(_ENDS, np.empty(0))
    x, values = await _points(cluster, request, curve, *request.inside, {"terms": {request.axis: wanted.tolist()}})
    if not np.isin(wanted, x).all():
        return None
    return {
        Aggregate.FIRST: values[np.searchsorted(x, first)],
        Aggregate.LAST: values[np.searchsorted(x, last, "right") - 1],
    }


async def _of_points(cluster: Cluster, request: Request, curve: _Curve) -> Buckets:
    """The buckets, made here of all points."""
    wanted = request.buckets
    if not curve.needs_all_points:
        x, values = await _points(cluster, request, curve, *request.inside)
    else:
        x, values = await _all_points(cluster, request, curve)
        inside = (wanted.range.least <= x) & (x <= wanted.range.greatest)
        x, values = x[inside], values[inside]
    return Buckets(curve.series.metric, curve.series.variant, *bucketed(x, values, curve.interval, wanted.aggregates))


async def _all_points(cluster: Cluster, request: Request, curve: _Curve) -> tuple[Int64Array, Float64Array]:
    """All points of a curve, which is smoothed if that is asked."""
    answers.will_read(_POINT_BYTES * curve.count)
    x, values = await _points(cluster, request, curve, _A_CURVE)
    if request.buckets.axis is BucketAxis.DURATION:
        x = since_first(x)
    if request.buckets.smoothing is not None:
        x, values = request.buckets.smoothing.whole(x, values)
    return x, values


async def _points(
    cluster: Cluster, request: Request, curve: _Curve, *conditions: JsonObject
) -> tuple[Int64Array, Float64Array]:
    """The series' points that match: their ascending places on the axis, and their values."""
    x, values = [np.empty(0, np.int64)], [np.empty(0)]
    async for hits in paging.pages(
        cluster,
        index_of(cluster.prefix, request.series),
        owner_key(request.series.owner),
        of_series([curve.series.key], *conditions),
        request.order,
        fields=["value", "special"],
        limit=paging.ALL,
    ):  # columns take much less memory than hits
        x.append(np.array([hit["sort"][0] for hit in hits], np.int64))
        values.append(np.array([value_of(hit["fields"]) for hit in hits], np.float64))
    return np.concatenate(x), np.concatenate(values)


def bucketed(
    x: Int64Array, values: Float64Array, interval: int, wanted: frozenset[Aggregate]
) -> tuple[Int64Array, Aggregates]:
    """Where buckets begin, and their aggregates, of points that ascend by x."""
    columns = of_points(values, columns_for(wanted))
    if not len(x):
        return x, made_of(columns, wanted)
    number = x // interval
    starts = np.flatnonzero(np.append(True, number[1:] != number[:-1]))
    return bucket_x(x[starts], interval), made_of(joined(columns, starts), wanted)
