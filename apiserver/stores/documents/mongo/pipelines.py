"""Aggregation pipelines: what MongoDB works out of fields, so that documents need not be read as a whole.

A pipeline makes one list of what lies behind lists, and says nothing of items that lack it. So where there is a list
further down than at the top, `LIST` stands for it, and the document is to be asked by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from apiserver.stores.documents.base import Document
from apiserver.stores.documents.dialect.paths import Path, reach
from apiserver.stores.documents.mongo.layout import before_index, name_of

Stage = dict[str, Any]

LIST: list[Any] = []


def takes(path: Path) -> bool:
    """Whether a pipeline can be told of the path: it knows no places in lists, and no NUL in names."""
    return before_index(path) == path and not any("\x00" in name for name in path)


def field(place: int) -> str:
    """What pipelines call the value at the path in this place."""
    return f"f{place}"


def with_lists(found: Sequence[Stage], paths: Sequence[Path]) -> list[Stage]:
    """Those of the values found at the paths that have a `LIST` among them."""
    nested = [field(place) for place, path in enumerate(paths) if len(path) > 1]
    return [values for name in nested for values in found if values.get(name) == LIST]


def given(document: Document, paths: Sequence[Path]) -> Document:
    """The values at the paths of a document; of lists, all their items."""
    return {field(place): _items(reach(document, path)) for place, path in enumerate(paths)}


def values(query: Stage, paths: Sequence[Path]) -> list[Stage]:
    """`_id` and the values at the paths, of each document that a query finds."""
    return [{"$match": query}, {"$project": _values(paths)}]


def groups(query: Stage, paths: Sequence[Path], *, by_item: bool) -> list[Stage]:
    """The number of documents (`documents`) for all values at the paths (`_id`) that are the same.

    by_item: the items of lists at the top one by one.
    """
    tops = [f"${name_of(path)}" for path in paths if len(path) == 1] if by_item else []
    items = [{"$unwind": {"path": top, "preserveNullAndEmptyArrays": True}} for top in tops]
    return [{"$match": query}, *items, {"$group": {"_id": _values(paths), "documents": {"$sum": 1}}}]


def varieties(query: Stage, name: str) -> list[Stage]:
    """For each set of names in a top-level field, two levels deep, the `value` that it has in a `document`.

    Such a set is the `_id`: an object, as not every server tells lists apart. There is none without names.
    """
    inner = _if_object("$$first.v", _with("second", "$$first.v", True), False)
    names = _if_object(f"${name}", _with("first", f"${name}", inner), {})
    group = {"_id": names, "document": {"$first": "$_id"}, "value": {"$first": f"${name}"}}
    return [{"$match": query}, {"$group": group}, {"$match": {"_id": {"$ne": {}}}}]


def _items(found: Iterable[Any]) -> list[Any]:
    return [item for value in found for item in (value if isinstance(value, list) else [value])]


def _values(paths: Sequence[Path]) -> Stage:
    return {field(place): _value(path) for place, path in enumerate(paths)}


def _value(path: Path) -> Any:
    value = f"${name_of(path)}"
    return value if len(path) == 1 else {"$cond": [{"$isArray": [value]}, LIST, value]}


def _with(name: str, value: str, item: Any) -> Stage:
    """An object with `item` in each field, of which `name` has its name `k` and its value `v`."""
    fields = {"input": {"$objectToArray": value}, "as": name, "in": {"k": f"$${name}.k", "v": item}}
    return {"$arrayToObject": {"$map": fields}}


def _if_object(value: str, then: Any, otherwise: Any) -> Stage:
    """In the order of values, objects are those from the empty one up to the first list."""
    return {"$cond": [{"$and": [{"$gte": [value, {"$literal": {}}]}, {"$lt": [value, []]}]}, then, otherwise]}
