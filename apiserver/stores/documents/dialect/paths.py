"""Dotted paths into a document: by name into an object, by index into a list, and by name into all objects of a list.

For example, in `{"a": [{"b": 1}, {"b": 2}]}`, the path `a.b` reaches 1 and 2, and the path `a.1.b` reaches 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.dialect.values import MISSING, NUMBER, class_of
from apiserver.stores.documents.query import Document, FirstNumber, Place

Path = tuple[str, ...]

_LONGEST = 100
#: An empty name, or one that starts with `$`. It is searched in the whole path, as updates may have 10,000s of paths.
_NO_NAME = re.compile(r"(?:^|\.)(?:[.$]|\Z)")


def parse(path: object) -> Path:
    """The names of a dotted path; InvalidFilter if one of them is empty, or starts with `$`."""
    if not isinstance(path, str):
        raise InvalidFilter(f"a field is named by text, not by {path!r}")
    names = tuple(path.split("."))
    if len(names) > _LONGEST or _NO_NAME.search(path):
        raise InvalidFilter(f"field '{path[:200]}': not a field name")
    if not path.isascii() and any("\ud800" <= character <= "\udfff" for character in path):  # not possible in UTF-8
        raise InvalidFilter(f"field {path[:200]!r}: not valid Unicode")
    return names


def parse_all(place: Place) -> tuple[Path, ...]:
    """The paths that a place in a filter or a sort stands for; InvalidFilter unless they lie below one field."""
    if not isinstance(place, FirstNumber):
        return (parse(place),)
    paths = tuple(map(parse, place.paths))
    if len(paths) < 2 or len(set(paths)) < len(paths) or len({path[0] for path in paths}) > 1:
        raise InvalidFilter(f"field '{' or '.join(place.paths)[:200]}': not different paths below one field")
    return paths


def index_of(name: str) -> int | None:
    """The list index that the name is, or None."""
    return int(name) if len(name) < 10 and name.isascii() and name.isdigit() else None


def reach(value: Any, path: Path) -> Iterator[Any]:
    """Every value at the path, and MISSING for each object on the way that lacks the next name.

    Items of lists that are not objects are passed over.
    """
    for place, name in enumerate(path):
        if isinstance(value, list):
            for item in value:
                if isinstance(item, dict):
                    yield from reach(item, path[place:])
            index = index_of(name)
            if index is not None and index < len(value):
                yield from reach(value[index], path[place + 1 :])
            return
        if not isinstance(value, dict) or name not in value:
            yield MISSING
            return
        value = value[name]
    yield value


def reach_first(value: Any, paths: Iterable[Path]) -> list[Any]:
    """Every value at the first of the paths that leads to a number, or to a list with one; MISSING if none does."""
    for path in paths:
        found = gathered(value, path)
        if found is not None and any(
            class_of(item) == NUMBER for item in (found if isinstance(found, list) else [found])
        ):
            return list(reach(value, path))
    return [MISSING]


def gathered(value: Any, path: Path) -> Any:
    """The value at the path; None if it is missing. If a list is on the way, the list of all values, item by item."""
    for place, name in enumerate(path):
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list):
            there = [found for found in reach(value, path[place:]) if found is not MISSING]
            items = [item for found in there for item in (found if isinstance(found, list) else [found])]
            return items if there else None
        else:
            return None
    return value


def shape_of(value: Any) -> int:
    """A hash of an object's names, and of the names in the objects directly below it."""
    below = value.items() if isinstance(value, dict) else ()
    return hash(tuple((name, tuple(inner) if isinstance(inner, dict) else None) for name, inner in below))


def project(document: Document, paths: list[Path]) -> Document:
    """A copy with only the fields at the paths and `id`. A list of objects keeps all its objects, with these fields."""
    wanted: dict[str, Any] = {"id": None}
    for path in paths:
        _plan(wanted, path)
    return _cut(document, wanted)


def _plan(wanted: dict[str, Any], path: Path) -> None:
    """Add a path to the tree of wanted names, in which None means everything below."""
    for name in path[:-1]:
        if name in wanted and wanted[name] is None:
            return
        wanted = wanted.setdefault(name, {})
    wanted[path[-1]] = None


def _cut(value: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    kept = {}
    for name, below in wanted.items():
        item = value.get(name, MISSING)
        if item is MISSING:
            continue
        if below is None:
            kept[name] = item
        elif isinstance(item, dict):
            kept[name] = _cut(item, below)
        elif isinstance(item, list):
            kept[name] = _cut_items(item, below)
    return kept


def _cut_items(items: list[Any], wanted: dict[str, Any]) -> list[Any]:
    nested = (item for item in items if isinstance(item, dict | list))
    return [_cut(item, wanted) if isinstance(item, dict) else _cut_items(item, wanted) for item in nested]
