"""Aggregation pipelines, with which MongoDB computes values from fields, so that whole documents need not be read.

A path through a list gives one list of all values behind it, in which items without a value leave no trace. So if there
is a list anywhere but at the top, the value is `LIST` instead, and the document itself must be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apiserver.stores.documents.dialect.paths import Path, reach
from apiserver.stores.documents.mongo.layout import before_index, name_of
from apiserver.stores.documents.query import Document

Stage = dict[str, Any]

LIST: list[Any] = []


def takes(path: Path) -> bool:
    """Whether a pipeline can use the path. It cannot use an index of a list, or a name with NUL."""
    return before_index(path) == path and not any("\x00" in name for name in path)


def field(place: int) -> str:
    """The name in pipelines of the value at path number `place`."""
    return f"f{place}"


def with_lists(found: Sequence[Stage], paths: Sequence[Path]) -> list[Stage]:
    """The found rows in which a value is `LIST`."""
    nested = [field(place) for place, path in enumerate(paths) if len(path) > 1]
    return [values for name in nested for values in found if values.get(name) == LIST]


def given(document: Document, paths: Sequence[Path]) -> Document:
    """The values at the paths of a document, with the items of lists one by one."""
    found = {field(place): reach(document, path) for place, path in enumerate(paths)}
    return {
        name: [item for value in values for item in (value if isinstance(value, list) else [value])]
        for name, values in found.items()
    }


def values(query: Stage, paths: Sequence[Path]) -> list[Stage]:
    """A pipeline for `_id` and the values at the paths of each document that a query finds."""
    return [{"$match": query}, {"$project": _values(paths)}]


def groups(query: Stage, paths: Sequence[Path], *, by_item: bool) -> list[Stage]:
    """A pipeline for the number of documents (`documents`) with the same values at the paths (`_id`).

    With `by_item`, the items of lists at the top count one by one.
    """
    tops = [f"${name_of(path)}" for path in paths if len(path) == 1] if by_item else []
    items = [{"$unwind": {"path": top, "preserveNullAndEmptyArrays": True}} for top in tops]
    return [{"$match": query}, *items, {"$group": {"_id": _values(paths), "documents": {"$sum": 1}}}]


def varieties(query: Stage, name: str) -> list[Stage]:
    """A pipeline for each distinct set of names in a top-level field, two levels deep: a `document` and its `value`.

    The set is the `_id`. It is an object, as not every server can compare lists. The empty set is left out.
    """
    inner = _if_object("$$first.v", _with("second", "$$first.v", True), False)
    names = _if_object(f"${name}", _with("first", f"${name}", inner), {})
    group = {"_id": names, "document": {"$first": "$_id"}, "value": {"$first": f"${name}"}}
    return [{"$match": query}, {"$group": group}, {"$match": {"_id": {"$ne": {}}}}]


def _values(paths: Sequence[Path]) -> Stage:
    return {field(place): _value(path) for place, path in enumerate(paths)}


def _value(path: Path) -> Any:
    value = f"${name_of(path)}"
    return value if len(path) == 1 else {"$cond": [{"$isArray": [value]}, LIST, value]}


def _with(name: str, value: str, item: Any) -> Stage:
    """The object `value` with `item` as each field's value. In it, `$$name.k` and `$$name.v` are the old field."""
    fields = {"input": {"$objectToArray": value}, "as": name, "in": {"k": f"$${name}.k", "v": item}}
    return {"$arrayToObject": {"$map": fields}}


def _if_object(value: str, then: Any, otherwise: Any) -> Stage:
    """`then` if the value is an object. In MongoDB's order, objects come from the empty one up to the first list."""
    return {"$cond": [{"$and": [{"$gte": [value, {"$literal": {}}]}, {"$lt": [value, []]}]}, then, otherwise]}
