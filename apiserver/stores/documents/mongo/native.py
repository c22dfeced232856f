"""Updates that MongoDB applies by itself: those that can only mean what the dialect says.

That is so for fields set, removed, or kept at a least or greatest value, unless a place in a list may be named, or a
field belongs to a unique index or may become a list where an index wants a single value. These are the updates that
come often, such as the summaries of a task's series: they are written without being read, whoever else writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bson.objectid import ObjectId

from apiserver.stores.documents.base import Update
from apiserver.stores.documents.dialect.paths import Path
from apiserver.stores.documents.dialect.updates import ParsedUpdate
from apiserver.stores.documents.mongo.layout import REVISION, Layout, before_index, name_of, plain

MANY_FIELDS = 500
"""More than these a server takes long to hold against each other, and we to write them down in one go."""
_OPERATORS = {"$set", "$unset", "$min", "$max"}


@dataclass(frozen=True, slots=True)
class NativeUpdate:
    """An update for MongoDB; `fits_all`: no document can be one that it does not fit."""

    update: dict[str, Any]
    fits_all: bool


def native_update(layout: Layout, update: Update, change: ParsedUpdate) -> NativeUpdate | None:
    """The update, which `change` was parsed from, for MongoDB itself; None when it is to be worked out here.

    InvalidDocument when a value cannot be kept.
    """
    if len(change.paths) > MANY_FIELDS:
        return None
    if not update.keys() <= _OPERATORS or change.roots & ({"id"} | layout.unique_roots):
        return None
    if any(before_index(path) != path for path in change.paths):
        return None
    indexed = {path[0] for path in layout.keys} & change.roots
    if indexed and not all(_keeps_single(layout, op, fields, indexed) for op, fields in update.items()):
        return None
    renamed = any(root[0] == "_" for root in change.roots)
    changes = {op: plain(_renamed(fields) if renamed else fields) for op, fields in update.items() if fields}
    changes["$set"] = {**changes.get("$set", {}), REVISION: ObjectId()}
    return NativeUpdate(changes, all(len(path) == 1 for path in change.paths))


def _keeps_single(layout: Layout, op: str, fields: Mapping[str, Any], indexed: set[str]) -> bool:
    """Whether indexed fields are single values after this, if they were before."""
    return op == "$unset" or all(
        path[0] not in indexed or (op == "$set" and path in layout.keys and not isinstance(value, dict | list | tuple))
        for path, value in ((_path(name), value) for name, value in fields.items())
    )


def _renamed(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name_of(_path(name)): value for name, value in fields.items()}


def _path(name: str) -> Path:
    return tuple(name.split("."))
