"""Counts the documents that have the same values, from the groups that an engine has read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from apiserver.stores.documents.dialect.values import order

Group = tuple[Any, ...]
"""The number of documents that have the same values, and these values. Several groups may have the same values, too."""


def counts_by_values(groups: Iterable[Group]) -> dict[tuple[Any, ...], int]:
    """The number of documents for each combination of values."""
    counts: dict[tuple[Any, ...], int] = {}
    for number, *values in groups:
        key = tuple(map(_countable, values))
        counts[key] = counts.get(key, 0) + number
    return counts


def counts_by_item(groups: Iterable[Group]) -> dict[Any, int]:
    """The number of documents for each value of one field. A list counts for each item, an empty one for null."""
    counts: dict[Any, int] = {}
    for number, value in groups:
        for item in value or [None] if isinstance(value, list) else [value]:
            key = _countable(item)
            counts[key] = counts.get(key, 0) + number
    return counts


def distinct_items(groups: Iterable[Group]) -> list[Any]:
    """The distinct values of one field, and items of lists there, sorted, without null."""
    items = (item for _, value in groups for item in (value if isinstance(value, list) else [value]))
    distinct = {order(item): item for item in items if item is not None}
    return [distinct[key] for key in sorted(distinct)]


def _countable(value: Any) -> Any:
    """What a value is counted by: a list or an object by its JSON text."""
    return orjson.dumps(value).decode() if isinstance(value, dict | list) else value
