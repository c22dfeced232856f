"""Updates that MongoDB applies by itself, because they surely mean the same there as in our language.

Most updates do. They are written without reading the document first. A guard is a condition for documents for which the
update surely means the same. Other documents, and other updates, are changed by `writing.py`. For example, `$push` on
`tags` has the guard that `tags` is missing or a list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from bson.objectid import ObjectId

from apiserver.stores.documents.base import Update
from apiserver.stores.documents.dialect.paths import Path
from apiserver.stores.documents.dialect.updates import ParsedUpdate
from apiserver.stores.documents.mongo.layout import REVISION, Layout, before_index, name_of, plain

MANY_FIELDS = 500
"""Up to so many fields are left to MongoDB. With more, a server takes long to compare them with each other."""
_LARGEST = 2**62

Guard = dict[str, Any]


@dataclass(frozen=True, slots=True)
class NativeUpdate:
    """An update for MongoDB, and conditions for a document besides the caller's. Without any, it fits all documents."""

    update: dict[str, Any]
    guard: list[Guard]


def native_update(layout: Layout, update: Update, change: ParsedUpdate) -> NativeUpdate | None:
    """The update, from which `change` was parsed, for MongoDB; None if it must be applied here.

    InvalidDocument if a value cannot be kept.
    """
    if len(change.paths) > MANY_FIELDS or change.roots & ({"id"} | layout.unique_roots):
        return None
    if any(before_index(path) != path for path in change.paths):
        return None
    fields = [(op, _path(name), operand) for op, named in update.items() for name, operand in named.items()]
    if not all(_OPERATORS[op](operand) and _keeps_single(layout, op, path, operand) for op, path, operand in fields):
        return None
    guard = [_an_object(parent) for parent in sorted({path[:n] for path in change.paths for n in range(1, len(path))})]
    guard += [_GUARDS[op](name_of(path)) for op, path, _ in fields if op in _GUARDS]
    changes = {
        op: plain({name_of(_path(name)): operand for name, operand in named.items()})
        for op, named in update.items()
        if named
    }
    changes["$set"] = {**changes.get("$set", {}), REVISION: ObjectId()}
    return NativeUpdate(changes, guard)


def _keeps_single(layout: Layout, op: str, path: Path, operand: Any) -> bool:
    """Whether an indexed field stays a single value."""
    if op == "$unset" or not any(path[0] == key[0] for key in layout.keys):
        return True
    return op == "$set" and path in layout.keys and not isinstance(operand, dict | list | tuple)


def _is_any(operand: Any) -> bool:
    return True


def _is_small(operand: Any) -> bool:
    return bool(abs(operand) < _LARGEST)


def _adds(operand: Any) -> bool:
    """Whether the operator adds anything."""
    return not isinstance(operand, Mapping) or operand.get("$each") != []


def _adds_text(operand: Any) -> bool:
    """Whether only texts are added. Not all servers with MongoDB's protocol treat 1 and 1.0 as the same."""
    return _is_text(operand["$each"] if isinstance(operand, Mapping) and "$each" in operand else [operand])


def _pulls_text(operand: Any) -> bool:
    """Whether only texts are removed, or objects by fields that are texts."""
    if not isinstance(operand, Mapping):
        return isinstance(operand, str)
    if set(operand) == {"$in"}:
        return _is_text(operand["$in"])
    return _is_text(operand.values()) and not any(name.startswith("$") for name in operand)


def _is_text(items: Collection[Any]) -> bool:
    return bool(items) and all(isinstance(item, str) for item in items)


_OPERATORS: dict[str, Callable[[Any], bool]] = {
    "$set": _is_any,
    "$unset": _is_any,
    "$min": _is_any,
    "$max": _is_any,
    "$push": _adds,
    "$inc": _is_small,
    "$addToSet": _adds_text,
    "$pull": _pulls_text,
}


def _an_object(path: Path) -> Guard:
    name = name_of(path)
    return {"$or": [{name: {"$exists": False}}, {name: {"$type": "object", "$not": {"$type": "array"}}}]}


def _a_list(name: str) -> Guard:
    return {"$or": [{name: {"$exists": False}}, {name: {"$type": "array"}}]}


def _a_small_number(name: str) -> Guard:
    return {"$or": [{name: {"$exists": False}}, {name: {"$gte": -_LARGEST, "$lte": _LARGEST}}]}


_GUARDS: dict[str, Callable[[str], Guard]] = {
    "$inc": _a_small_number,
    "$push": _a_list,
    "$addToSet": _a_list,
    "$pull": _a_list,
}


def _path(name: str) -> Path:
    return tuple(name.split("."))
