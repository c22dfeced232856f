"""Filters and sort orders in Elasticsearch's language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from apiserver.events.model import JsonObject, Owner, Selection
from apiserver.events.queries import GREATEST, LEAST, Range, SeriesQuery
from apiserver.stores.events.elasticsearch.names import owner_key, series_of

#: A search with these options returns only the fields that it asks for.
BARE: Mapping[str, Any] = {"_source": False, "stored_fields": "_none_", "track_total_hits": False}

#: The most terms of one query.
_TERMS = 50_000


def of(series: SeriesQuery, *more: JsonObject) -> JsonObject:
    """The events of the series that meet all of `more`."""
    key = owner_key(series.owner)
    filters = [{"term": {"owner": key}}, *more]
    if series.selection:
        filters.append(_selected(key, series.selection))
    return {"bool": {"filter": filters}}


def of_each(queries: Sequence[SeriesQuery]) -> JsonObject:
    """The events of all these series of several owners; of an owner that is there twice, those of both queries."""
    series: list[str] = []
    whole: dict[frozenset[str], list[str]] = {}
    for query in queries:
        key = owner_key(query.owner)
        series += _single(key, query.selection)
        metrics = frozenset(names.metric for names in query.selection if not names.variants)
        if metrics or not query.selection:
            whole.setdefault(metrics, []).append(key)
    conditions = [
        all_of(terms("owner", owners), *([terms("metric", [*metrics])] if metrics else []))
        for metrics, owners in whole.items()
    ]
    return any_of([*conditions, *([terms("series", series)] if series else [])])


def of_owners(owners: Sequence[Owner]) -> JsonObject:
    """All events of these owners."""
    return terms("owner", [owner_key(owner) for owner in owners])


def of_series(series: Sequence[str], *more: JsonObject) -> JsonObject:
    """The events of the series with these keys that meet all of `more`."""
    return {"bool": {"filter": [terms("series", series), *more]}}


def any_of(conditions: Sequence[JsonObject]) -> JsonObject:
    """Events that meet at least one of the conditions; there must be one."""
    return conditions[0] if len(conditions) == 1 else {"bool": {"should": list(conditions)}}


def between(field: str, least: float | None, greatest: float | None) -> list[JsonObject]:
    """Conditions for numbers from `least` to `greatest`, both inclusive."""
    bounds = {name: bound for name, bound in (("gte", least), ("lte", greatest)) if bound is not None}
    return [{"range": {field: bounds}}] if bounds else []


def inside(field: str, range: Range) -> list[JsonObject]:
    """Conditions for numbers in the range."""
    least = None if range.least == LEAST else range.least
    return between(field, least, None if range.greatest == GREATEST else range.greatest)


def blocks_since(place: int) -> JsonObject:
    """Fragments that were written behind a place, chunks of such fragments, and chunks of none that were."""
    made_of_none = without({"exists": {"field": "newest"}})
    return any_of([all_of(made_of_none, {"range": {"_seq_no": {"gt": place}}}), {"range": {"newest": {"gt": place}}}])


def all_of(*conditions: JsonObject) -> JsonObject:
    """Events that meet all conditions."""
    return {"bool": {"filter": list(conditions)}}


def without(condition: JsonObject) -> JsonObject:
    """The opposite of a condition."""
    return {"bool": {"must_not": [condition]}}


def ordered(fields: Sequence[str], *, descending: bool = False) -> list[JsonObject]:
    """A sort order by the fields, all in one direction."""
    return [{field: "desc" if descending else "asc"} for field in fields]


def _selected(owner: str, selection: Selection) -> JsonObject:
    whole = [wanted.metric for wanted in selection if not wanted.variants]
    single = _single(owner, selection)
    choices = [terms("metric", whole)] if whole else []
    if single:
        choices.append(terms("series", single))
    return any_of(choices)


def _single(owner: str, selection: Selection) -> list[str]:
    """The keys of the series that are selected by metric and variant."""
    return [series_of(owner, wanted.metric, variant) for wanted in selection for variant in wanted.variants]


def terms(field: str, values: Sequence[str]) -> JsonObject:
    """Events that have one of the values. There may be any number of them, also none."""
    if len(values) < 2:
        return {"term": {field: values[0]}} if values else {"match_none": {}}
    return any_of([{"terms": {field: list(values[start : start + _TERMS])}} for start in range(0, len(values), _TERMS)])
