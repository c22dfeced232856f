"""Updates that MongoDB applies by itself, because they surely mean the same there as in our language.

Most updates do. They are written without reading the document first. A guard is a condition for documents for which the
update surely means the same. Other documents, and other updates, are changed by `writing.py`. For example, `push` on
`tags` has the guard that `tags` is missing or a list.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from bson.objectid import ObjectId

from apiserver.stores.documents.dialect.paths import Path
from apiserver.stores.documents.dialect.updates import ParsedUpdate
from apiserver.stores.documents.mongo.layout import REVISION, Layout, before_index, name_of, plain
from apiserver.stores.documents.query import In, Update

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
    words = update.by_word()
    fields = [(word, _path(name), what) for word, named in words.items() for name, what in named.items()]
    if any(word in _FITS and not _FITS[word](what) for word, _, what in fields):
        return None
    if not all(_keeps_single(layout, word, path, what) for word, path, what in fields):
        return None
    parents = sorted({path[:n] for path in change.paths for n in range(1, len(path))})
    guard = [_missing_or(parent, _AN_OBJECT) for parent in parents]
    guard += [_missing_or(path, _A_LIST) for word, path, _ in fields if word in _FITS]
    changes = {
        _OPERATORS[word]: plain({name_of(_path(name)): _operand(word, what) for name, what in named.items()})
        for word, named in words.items()
    }
    changes["$set"] = {**changes.get("$set", {}), REVISION: ObjectId()}
    return NativeUpdate(changes, guard)


def _operand(word: str, what: Any) -> Any:
    """What MongoDB's operator takes."""
    if word in ("push", "add"):
        return {"$each": list(what)}
    return {"$in": list(what.values)} if isinstance(what, In) else what


def _keeps_single(layout: Layout, word: str, path: Path, what: Any) -> bool:
    """Whether an indexed field stays a single value."""
    if word == "unset" or not any(path[0] == key[0] for key in layout.keys):
        return True
    return word == "set" and path in layout.keys and not isinstance(what, dict | list | tuple)


def _pulls_text(what: Any) -> bool:
    """Whether only texts are removed, or objects by fields that are texts."""
    if isinstance(what, In):
        return _is_text(what.values)
    return _is_text(what.values()) if isinstance(what, Mapping) else isinstance(what, str)


def _is_text(items: Collection[Any]) -> bool:
    return bool(items) and all(isinstance(item, str) for item in items)


_OPERATORS = {word: f"${word}" for word in ("set", "unset", "min", "max", "push", "pull")} | {"add": "$addToSet"}
#: For changes of lists, whether MongoDB may apply them: only texts are added if they are not there, as not all servers
#: with MongoDB's protocol treat 1 and 1.0 as the same.
_FITS: dict[str, Callable[[Any], bool]] = {"push": bool, "add": _is_text, "pull": _pulls_text}

_AN_OBJECT: Guard = {"$type": "object", "$not": {"$type": "array"}}
_A_LIST: Guard = {"$type": "array"}


def _missing_or(path: Path, test: Guard) -> Guard:
    name = name_of(path)
    return {"$or": [{name: {"$exists": False}}, {name: test}]}


def _path(name: str) -> Path:
    return tuple(name.split("."))
