"""Dotted paths into a document: through objects by name, through lists by index or into every object they hold."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from apiserver.stores.documents.base import Document, InvalidFilter
from apiserver.stores.documents.dialect.values import MISSING

Path = tuple[str, ...]

_LONGEST = 100
#: An empty name, or one that starts with `$`. A search, as summaries of many series are set by ten thousands of paths.
_NO_NAME = re.compile(r"(?:^|\.)(?:[.$]|\Z)")


def parse(path: object) -> Path:
    """The names of a dotted path; InvalidFilter when it is empty, has an empty name, or one that starts with `$`."""
    if not isinstance(path, str):
        raise InvalidFilter(f"a field is named by text, not by {path!r}")
    names = tuple(path.split("."))
    if len(names) > _LONGEST or _NO_NAME.search(path):
        raise InvalidFilter(f"field '{path[:200]}': not a field name")
    if not is_text(path):
        raise InvalidFilter(f"field {path[:200]!r}: not valid Unicode")
    return names


def is_text(value: str) -> bool:
    """Whether the text can be written as UTF-8 (a lone surrogate cannot)."""
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def index_of(name: str) -> int | None:
    """The list index that a name stands for, if it is one."""
    return int(name) if len(name) < 10 and name.isascii() and name.isdigit() else None


def reach(value: Any, path: Path) -> Iterator[Any]:
    """Every value at the path; MISSING for each object on the way that lacks the next name.

    An item of a list that is no object has no names, so it adds nothing.
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


def gathered(value: Any, path: Path) -> Any:
    """The value at the path, None when it is missing; where a list is on the way, a list of all, items one by one."""
    for place, name in enumerate(path):
        if isinstance(value, list):
            there = [found for found in reach(value, path[place:]) if found is not MISSING]
            items = [item for found in there for item in (found if isinstance(found, list) else [found])]
            return items if there else None
        value = value.get(name) if isinstance(value, dict) else None
    return value


def shape_of(value: Any) -> int:
    """A number that is the same for objects with the same names, and the same names in the objects below these."""
    below = value.items() if isinstance(value, dict) else ()
    return hash(tuple((name, tuple(inner) if isinstance(inner, dict) else None) for name, inner in below))


def project(document: Document, paths: list[Path]) -> Document:
    """A copy that has only the fields at the paths (a list of objects keeps its objects, cut down) and `id`."""
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
