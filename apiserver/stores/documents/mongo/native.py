"""Updates that MongoDB applies by itself, where they can only mean what the dialect says.

The common ones can: they are written without being read, whoever else writes the same document. A guard says which
documents an update is sure to fit; of others, and of other updates, it is worked out here what they mean.
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
"""More than these a server takes long to hold against each other, and we to write them down in one go."""
_LARGEST = 2**62

Guard = dict[str, Any]


@dataclass(frozen=True, slots=True)
class NativeUpdate:
    """An update for MongoDB, and what a document must meet besides the caller's condition; nothing: it fits all."""

    update: dict[str, Any]
    guard: list[Guard]


def native_update(layout: Layout, update: Update, change: ParsedUpdate) -> NativeUpdate | None:
    """The update, which `change` was parsed from, for MongoDB itself; None when it is to be worked out here.

    InvalidDocument when a value cannot be kept.
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
    """Whether an indexed field is a single value after this, if it was before."""
    if op == "$unset" or not any(path[0] == key[0] for key in layout.keys):
        return True
    return op == "$set" and path in layout.keys and not isinstance(operand, dict | list | tuple)


def _is_any(operand: Any) -> bool:
    return True


def _is_small(operand: Any) -> bool:
    return bool(abs(operand) < _LARGEST)


def _adds(operand: Any) -> bool:
    """Whether there is something to add."""
    return not isinstance(operand, Mapping) or operand.get("$each") != []


def _adds_text(operand: Any) -> bool:
    """Whether a set gets but text: not all servers that speak MongoDB's protocol know 1 and 1.0 to be the same."""
    return _is_text(operand["$each"] if isinstance(operand, Mapping) and "$each" in operand else [operand])


def _pulls_text(operand: Any) -> bool:
    """Whether what goes is text, or objects by fields that are text."""
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
