"""The stats of scalar series: counts, sums, and the points at their ends."""

from __future__ import annotations

import math
from collections.abc import Sequence

from apiserver.events.model import JsonObject, Owner, ScalarStats
from apiserver.events.queries import SeriesQuery
from apiserver.stores.events.elasticsearch.aggregating import SeriesAggs, aggregate
from apiserver.stores.events.elasticsearch.cluster import Cluster
from apiserver.stores.events.elasticsearch.names import index_of, owner_key
from apiserver.stores.events.elasticsearch.queries import BARE, between, of_series, ordered
from apiserver.stores.events.elasticsearch.scalars import value_of
from apiserver.stores.events.elasticsearch.series import Series, SeriesIndex

#: Aggregations count in doubles, which hold whole numbers exactly up to here.
EXACT = 2**53

_AXES = ("iter", "timestamp")
_POINT = ("iter", "value", "special")
#: For each end of a series, an order in which the wanted point is the first. Values that are not finite come last.
_ENDS: dict[str, dict[str, str]] = {
    "first": {"timestamp": "asc", "iter": "asc"},
    "last": {"timestamp": "desc", "iter": "desc"},
    "least": {"value": "asc", "iter": "asc"},
    "greatest": {"value": "desc", "iter": "asc"},
}


def extent(field: str) -> JsonObject:
    """Aggregations: the least and the greatest value of a field."""
    return {f"min_{field}": {"min": {"field": field}}, f"max_{field}": {"max": {"field": field}}}


_SUMMED: JsonObject = {**extent("iter"), **extent("timestamp"), "values": {"stats": {"field": "value"}}}
#: The same, and the deviations and the first point whose value is not finite.
_SPREAD: JsonObject = _SUMMED | {
    "values": {"extended_stats": {"field": "value"}},
    "not_finite": {"filter": {"exists": {"field": "special"}}, "aggs": extent("iter")},
}
#: The points at the ends. To find them takes long for long series.
_POINTS_AT_ENDS: JsonObject = {
    name: {
        "top_hits": {
            "size": 1,
            "_source": False,
            "stored_fields": "_none_",
            "docvalue_fields": list(_POINT),
            "sort": [{field: direction} for field, direction in order.items()],
        }
    }
    for name, order in _ENDS.items()
}


async def stats(cluster: Cluster, known: SeriesIndex, asked: SeriesQuery, *, spread: bool = False) -> list[ScalarStats]:
    """The stats of each series, sorted by metric and variant; with `spread`, all of them.

    The first request finds all stats but the ends of long series. Their points are then found by one search for each
    end, which is fast as the timestamp or the value of the point is known.
    """
    series = await known.likely(asked)
    aggs = _SPREAD if spread else _SUMMED
    wanted = [SeriesAggs(one, aggs) for one in series]
    wanted = [SeriesAggs(one.series, aggs | _POINTS_AT_ENDS) if one.short else one for one in wanted]
    index, routing = index_of(cluster.prefix, asked), owner_key(asked.owner)
    summed = await aggregate(cluster, index, routing, wanted)
    found = [
        (one, summed[one.key], await _extents(cluster, index, routing, one, summed[one.key]))
        for one in series
        if one.key in summed
    ]
    missing = [(at, name) for at, (_, of, _) in enumerate(found) for name in _ENDS if not _is_known(of, name)]
    bodies = [_end(found[at][0], [{"iter": _ENDS[name]["iter"]}], _at(name, *found[at][1:])) for at, name in missing]
    for (at, name), answer in zip(missing, await cluster.searches(index, bodies, routing=routing), strict=True):
        found[at][1][name] = answer
    missed = [(at, name) for at, name in missing if not found[at][1][name]["hits"]["hits"]]
    if missed:  # points were overwritten or deleted meanwhile, so search among all points that are there now
        orders = {name: [{field: direction} for field, direction in order.items()] for name, order in _ENDS.items()}
        anew = [_end(found[at][0], orders[name]) for at, name in missed]
        for (at, name), answer in zip(missed, await cluster.searches(index, anew, routing=routing), strict=True):
            found[at][1][name] = answer
    ends = [[of[name] for name in _ENDS] for _, of, _ in found]
    return [
        _stats(asked.owner, one, of, extents, its)
        for (one, of, extents), its in zip(found, ends, strict=True)
        if all(answer["hits"]["hits"] for answer in its)
    ]


def _is_known(summed: JsonObject, name: str) -> bool:
    """Whether the point at an end is known. If it is a zero, it is not: nodes sort −0.0 before the equal 0.0."""
    extreme = {"least": "min", "greatest": "max"}.get(name)
    return name in summed and (extreme is None or summed["values"][extreme] != 0)


async def _extents(cluster: Cluster, index: str, routing: str, series: Series, summed: JsonObject) -> dict[str, int]:
    ends = [name for axis in _AXES for name in extent(axis)]
    found = {name: await exact(cluster, index, routing, series, summed, name) for name in ends}
    not_finite = summed.get("not_finite")
    if not_finite and not_finite["doc_count"]:
        special = {"exists": {"field": "special"}}
        first = await exact(cluster, index, routing, series, not_finite, "min_iter", special)
        found["first_not_finite_iter"] = first
    return found


def _at(name: str, summed: JsonObject, extents: dict[str, int]) -> list[JsonObject]:
    """The conditions for the point at an end. Its timestamp or value is known, so nodes look at few points."""
    values = summed["values"]
    (field, direction), *_ = _ENDS[name].items()
    if field == "timestamp":
        at = extents["min_timestamp" if direction == "asc" else "max_timestamp"]
        return between(field, at, at)
    if not values["count"]:
        return []
    value = float(values["min" if direction == "asc" else "max"])
    return between(field, -0.0, 0.0) if value == 0 else between(field, value, value)


def _end(series: Series, order: list[JsonObject], conditions: Sequence[JsonObject] = ()) -> JsonObject:
    """A search for the first point that meets the conditions."""
    query = of_series([series.key], *conditions)
    return {**BARE, "size": 1, "query": query, "sort": order, "docvalue_fields": list(_POINT)}


def _stats(
    owner: Owner, series: Series, summed: JsonObject, extents: dict[str, int], ends: list[JsonObject]
) -> ScalarStats:
    first, last, least, greatest = (answer["hits"]["hits"][0]["fields"] for answer in ends)
    values = summed["values"]
    some = values["count"] > 0
    return ScalarStats(
        owner=owner,
        metric=series.metric,
        variant=series.variant,
        count=summed["doc_count"],
        finite_count=values["count"],
        **extents,
        first_value=value_of(first),
        first_iter=first["iter"][0],
        last_value=value_of(last),
        last_iter=last["iter"][0],
        min_value=value_of(least) if some else None,
        min_value_iter=least["iter"][0] if some else None,
        max_value=value_of(greatest) if some else None,
        max_value_iter=greatest["iter"][0] if some else None,
        sum=float(values["sum"]),
        deviations=_deviations(values) if "variance" in values else None,
    )


def _deviations(values: JsonObject) -> float:
    """The sum of (value − mean)², of which nodes answer the mean; None or a text where it exceeds float64."""
    if not values["count"]:
        return 0.0
    variance = values["variance_population"]
    return float(variance) * values["count"] if isinstance(variance, float) and variance >= 0 else math.inf


async def exact(
    cluster: Cluster, index: str, routing: str, series: Series, found: JsonObject, name: str, *conditions: JsonObject
) -> int:
    """A series' least or greatest value of a field. The aggregation `name` of `extent` found it, perhaps rounded."""
    near = float(found[name]["value"])
    if abs(near) < EXACT:
        return int(near)
    end, _, field = name.partition("_")
    body = {
        **BARE,
        "size": 1,
        "query": of_series([series.key], *conditions),
        "sort": ordered([field], descending=end == "max"),
    }
    hits = (await cluster.search(index, body, routing=routing))["hits"]["hits"]
    return int(hits[0]["sort"][0]) if hits else min(int(near), 2**63 - 1)  # none: they were deleted meanwhile
