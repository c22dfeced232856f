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
from apiserver.stores.documents.query import In

MANY_FIELDS = 500
"""Up to so many fields are left to MongoDB. With more, a server takes long to compare them with each other."""

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
    if any(op in _FITS and not _FITS[op](operand) for op, _, operand in fields):
        return None
    if not all(_keeps_single(layout, op, path, operand) for op, path, operand in fields):
        return None
    parents = sorted({path[:n] for path in change.paths for n in range(1, len(path))})
    guard = [_missing_or(parent, _AN_OBJECT) for parent in parents]
    guard += [_missing_or(path, _GUARDS[op]) for op, path, _ in fields if op in _GUARDS]
    changes = {
        op: plain(
            {
                name_of(_path(name)): {"$in": list(operand.values)} if isinstance(operand, In) else operand
                for name, operand in named.items()
            }
        )
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


def _adds(operand: Any) -> bool:
    """Whether the operator adds anything."""
    return not isinstance(operand, Mapping) or operand.get("$each") != []


def _adds_text(operand: Any) -> bool:
    """Whether only texts are added. Not all servers with MongoDB's protocol treat 1 and 1.0 as the same."""
    return _is_text(operand["$each"] if isinstance(operand, Mapping) and "$each" in operand else [operand])


def _pulls_text(operand: Any) -> bool:
    """Whether only texts are removed, or objects by fields that are texts."""
    if isinstance(operand, In):
        return _is_text(operand.values)
    if not isinstance(operand, Mapping):
        return isinstance(operand, str)
    return _is_text(operand.values())


def _is_text(items: Collection[Any]) -> bool:
    return bool(items) and all(isinstance(item, str) for item in items)


#: Whether MongoDB may apply an operator with an operand; operators that are not here fit any.
_FITS: dict[str, Callable[[Any], bool]] = {
    "$push": _adds,
    "$addToSet": _adds_text,
    "$pull": _pulls_text,
}

_AN_OBJECT: Guard = {"$type": "object", "$not": {"$type": "array"}}
_A_LIST: Guard = {"$type": "array"}

#: What the field of an operator must be, unless it is missing.
_GUARDS = {"$push": _A_LIST, "$addToSet": _A_LIST, "$pull": _A_LIST}


def _missing_or(path: Path, test: Guard) -> Guard:
    name = name_of(path)
    return {"$or": [{name: {"$exists": False}}, {name: test}]}


def _path(name: str) -> Path:
    return tuple(name.split("."))
