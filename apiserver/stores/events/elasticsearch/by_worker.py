"""What each worker reported of scalar series: how many points and when, and the means of equal steps of time.

Short series share searches. Long series have a search each, or several if their buckets do not fit into one answer: a
`composite` aggregation goes on where the answer before ended, and takes no longer than other aggregations. Steps are
made by `date_histogram`, even if timestamps are no dates, as it counts in whole numbers, not in doubles.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence

import numpy as np

from apiserver.events.model import JsonObject, WorkerMeans, WorkerSpan
from apiserver.events.queries import GREATEST, Grid, SeriesQuery
from apiserver.stores.events.elasticsearch.aggregating import SeriesAggs, aggregate
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.names import index_of, owner_key
from apiserver.stores.events.elasticsearch.queries import between, of, of_series
from apiserver.stores.events.elasticsearch.series import MOST_BUCKETS, Series, SeriesIndex
from apiserver.stores.events.elasticsearch.stats import extent

#: Buckets of one page. A worker's minutes of a week are fewer.
PAGE = 12_000
#: Series that have a page each in one answer.
_AT_ONCE = 2

_MEAN: JsonObject = {"mean": {"avg": {"field": "value"}}, "count": {"value_count": {"field": "value"}}}

#: Where a step begins, its number of finite values, and their mean; None if there are none.
_Row = tuple[int, int, float | None]


async def spans(cluster: Cluster, asked: SeriesQuery) -> list[WorkerSpan]:
    """What each worker reported of each series, sorted."""
    index, fields = index_of(cluster.prefix, asked), ("metric", "variant", "worker")
    ends = extent("timestamp")
    found = []
    async for bucket in cluster.composite(index, of(asked), fields, routing=owner_key(asked.owner), aggs=ends):
        metric, variant, worker = (bucket["key"][field] for field in fields)
        first, last = (min(int(bucket[end]["value"]), GREATEST) for end in ends)
        found.append(WorkerSpan(metric, variant, worker, bucket["doc_count"], first, last))
    return sorted(found)


async def means(cluster: Cluster, known: SeriesIndex, asked: SeriesQuery, grid: Grid) -> list[WorkerMeans]:
    """The means of each step of what each worker reported of each series, sorted by name and worker."""
    index, routing = index_of(cluster.prefix, asked), owner_key(asked.owner)
    by_step = {"date_histogram": {**_by_step(grid), "min_doc_count": 1}, "aggs": _MEAN}
    # At most two buckets for each point.
    aggs = {"workers": {"terms": {"field": "worker", "size": MOST_BUCKETS}, "aggs": {"steps": by_step}}}
    wanted = [SeriesAggs(one, aggs, one.count or 1) for one in await known.likely(asked)]
    shared = await aggregate(cluster, index, routing, [one for one in wanted if one.short], *_inside(grid))
    found: dict[tuple[str, str, str], list[_Row]] = {}
    for one in (one.series for one in wanted if one.series.key in shared):
        for of_worker in shared[one.key]["workers"]["buckets"]:
            rows = [(step["key"], *_values(step)) for step in of_worker["steps"]["buckets"]]
            found[one.metric, one.variant, of_worker["key"]] = rows
    long = [one.series for one in wanted if not one.short]
    async for one, buckets in _pages(cluster, index, routing, long, grid):
        for bucket in buckets:
            row = (bucket["key"]["step"], *_values(bucket))
            found.setdefault((one.metric, one.variant, bucket["key"]["worker"]), []).append(row)
    each = (_means(name, rows, grid) for name, rows in sorted(found.items()))
    return [means for means in each if len(means.steps)]


def _inside(grid: Grid) -> list[JsonObject]:
    """The conditions for points in the grid."""
    return between("timestamp", grid.start, grid.stop)


def _by_step(grid: Grid) -> JsonObject:
    """The options of a `date_histogram` that makes the steps of the grid."""
    return {"field": "timestamp", "fixed_interval": f"{grid.width}ms", "offset": grid.start}


def _means(name: tuple[str, str, str], rows: Sequence[_Row], grid: Grid) -> WorkerMeans:
    begins, counts = (np.array([row[n] for row in rows], np.int64) for n in (0, 1))
    values, some = np.array([mean for *_, mean in rows], np.float64), counts > 0
    return WorkerMeans(*name, (begins[some] - grid.start) // grid.width, counts[some], values[some])


def _values(bucket: JsonObject) -> tuple[int, float | None]:
    return bucket["count"]["value"], bucket["mean"]["value"]


async def _pages(
    cluster: Cluster, index: str, routing: str, series: Iterable[Series], grid: Grid
) -> AsyncIterator[tuple[Series, list[JsonObject]]]:
    """The buckets of each series in the order of workers and steps, page by page."""
    left: list[tuple[Series, JsonObject | None]] = [(one, None) for one in series]
    while left:
        asked, left = left[:_AT_ONCE], left[_AT_ONCE:]
        bodies = [_page(one, after, grid) for one, after in asked]
        for (one, _), answer in zip(asked, await cluster.searches(index, bodies, routing=routing), strict=True):
            if found := answer.get("aggregations"):
                buckets = found["group"]["buckets"]
                yield one, buckets
                if len(buckets) == PAGE:
                    left.append((one, found["group"]["after_key"]))


def _page(series: Series, after: JsonObject | None, grid: Grid) -> JsonObject:
    group: JsonObject = {
        "size": PAGE,
        "sources": [{"worker": {"terms": {"field": "worker"}}}, {"step": {"date_histogram": _by_step(grid)}}],
    }
    if after is not None:
        group["after"] = after
    aggs = {"group": {"composite": group, "aggs": _MEAN}}
    query = of_series([series.key], *_inside(grid))
    return {"size": 0, "track_total_hits": False, "query": query, "aggs": aggs}
