"""Reads points of scalar series: pages by iteration and by time, and the last values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from apiserver.events.model import JsonObject, ScalarPoints, ScalarPosition
from apiserver.events.queries import GREATEST, PageQuery, SeriesQuery
from apiserver.stores.events.elasticsearch import names, paging
from apiserver.stores.events.elasticsearch.aggregating import SeriesAggs, aggregate
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.queries import BARE, between, of, of_series, ordered
from apiserver.stores.events.elasticsearch.series import SeriesIndex
from apiserver.stores.events.elasticsearch.writing import INFINITE, MINUS_INFINITE

BY_ITERATION = ("iter", "metric", "variant")
BY_TIME = ("timestamp", "iter", "metric", "variant")

#: The most hits that `top_hits` returns.
_MOST_TOP_HITS = 100
_SPECIAL = {INFINITE: math.inf, MINUS_INFINITE: -math.inf}


def value_of(fields: Mapping[str, Sequence[Any]]) -> float:
    """A point's value, finite or not, from the fields `value` and `special`."""
    if "value" in fields:
        return float(fields["value"][0])
    return _SPECIAL.get(fields["special"][0], math.nan)


async def points(cluster: Cluster, series: SeriesQuery, page: PageQuery[ScalarPosition]) -> ScalarPoints:
    """A page by iteration, as `EventStore.scalar_points` describes it."""
    hits = await _page(cluster, series, BY_ITERATION, page, *between("iter", None, page.until))
    if page.whole and len(hits) == page.limit:
        iter = hits[-1]["sort"][0]
        rest = PageQuery(paging.ALL, hits[-1]["sort"], page.descending)
        hits += await _page(cluster, series, BY_ITERATION, rest, *between("iter", iter, iter))
    return _columns(hits, BY_ITERATION)


async def earliest_points(cluster: Cluster, series: SeriesQuery, limit: int, after: int | None) -> ScalarPoints:
    """A page by time, as `EventStore.earliest_points` describes it."""
    if after is not None and after >= GREATEST:
        return _columns([], BY_TIME)
    later = between("timestamp", None if after is None else after + 1, None)
    hits = await _page(cluster, series, BY_TIME, PageQuery(limit), *later)
    if len(hits) == limit:
        last = hits[-1]["sort"]
        same = between("timestamp", last[0], last[0])
        hits += await _page(cluster, series, BY_TIME, PageQuery(paging.ALL, last), *same)
    return _columns(hits, BY_TIME)


async def last_values(
    cluster: Cluster, known: SeriesIndex, asked: SeriesQuery, n: int
) -> dict[tuple[str, str], list[float]]:
    """The last `n` values of each series, oldest first. Short series share searches, long ones have one each."""
    index, routing = names.index_of(cluster.prefix, asked), names.owner_key(asked.owner)
    last = {"size": n, "sort": ordered(["iter"], descending=True), "docvalue_fields": ["value", "special"]}
    top = {"last": {"top_hits": {**last, "_source": False, "stored_fields": "_none_"}}}
    series = await known.find(asked)
    short = [wanted for wanted in (SeriesAggs(one, top) for one in series) if wanted.short and n <= _MOST_TOP_HITS]
    shared = await aggregate(cluster, index, routing, short)
    found = {key: one["last"] for key, one in shared.items()}
    rest = [one for one in series if one.key not in found]
    bodies: list[JsonObject] = [{**BARE, "query": of_series([one.key]), **last} for one in rest]
    for one, answer in zip(rest, await cluster.searches(index, bodies, routing=routing), strict=True):
        found[one.key] = answer
    return {
        (one.metric, one.variant): [value_of(hit["fields"]) for hit in reversed(found[one.key]["hits"]["hits"])]
        for one in series
    }


async def _page(
    cluster: Cluster, series: SeriesQuery, by: Sequence[str], page: PageQuery[Any], *conditions: JsonObject
) -> list[JsonObject]:
    pages = paging.pages(
        cluster,
        names.index_of(cluster.prefix, series),
        names.owner_key(series.owner),
        of(series, *conditions),
        ordered(by, descending=page.descending),
        fields=[field for field in ("timestamp", "value", "special", "worker", "received") if field not in by],
        after=page.after,
        limit=page.limit,
    )
    return [hit async for hits in pages for hit in hits]


def _columns(hits: list[JsonObject], by: Sequence[str]) -> ScalarPoints:
    metric, variant, iter = (by.index(field) for field in ("metric", "variant", "iter"))
    rows = [hit["sort"] for hit in hits]
    named = sorted({(row[metric], row[variant]) for row in rows})
    numbers = {name: number for number, name in enumerate(named)}
    fields = [hit["fields"] for hit in hits]
    if "timestamp" in by:
        timestamps = [row[by.index("timestamp")] for row in rows]
    else:
        timestamps = [one["timestamp"][0] for one in fields]
    return ScalarPoints(
        names=named,
        series=np.array([numbers[row[metric], row[variant]] for row in rows], np.int32),
        iters=np.array([row[iter] for row in rows], np.int64),
        timestamps=np.array(timestamps, np.int64),
        values=np.array([value_of(one) for one in fields], np.float64),
        workers=[one["worker"][0] for one in fields],
        received=np.array([one["received"][0] for one in fields], np.int64),
    )
