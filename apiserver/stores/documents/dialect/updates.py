"""Parses and checks updates, and applies them to documents one by one.

No two words of an update may touch the same field, or a field and another one inside it. `id` keeps its value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from apiserver.stores.documents.base import InvalidFilter
from apiserver.stores.documents.dialect.filters import item_test
from apiserver.stores.documents.dialect.paths import Path, index_of, parse
from apiserver.stores.documents.dialect.values import MISSING, order, same
from apiserver.stores.documents.query import Document, Update

Change = Callable[[Any], Any]
"""Makes a field's new value from its old one. MISSING stands for a missing field, before and after."""

_LONGEST_PADDING = 1000


class ParsedUpdate:
    """The changes of one update. `paths` are the fields that it may change, `roots` are their top-level fields."""

    def __init__(self, update: Update) -> None:
        words = update.by_word().items()
        self._changes = [
            (parse(name), _WORDS[word](name, what)) for word, named in words for name, what in named.items()
        ]
        self.paths = [path for path, _ in self._changes]
        _check_conflicts(self.paths)
        self.roots = {path[0] for path in self.paths}

    def apply(self, document: Document) -> Document:
        """Change the document in place and return it. After InvalidFilter, it may be changed in part."""
        for path, change in self._changes:
            _change(document, path, change)
        return document


def _check_conflicts(paths: list[Path]) -> None:
    whole = set(paths)
    if len(whole) < len(paths):
        twice = next(path for path in paths if paths.count(path) > 1)
        raise InvalidFilter(f"field '{'.'.join(twice)}': updated twice")
    for path in paths:
        for length in range(1, len(path)):
            if path[:length] in whole:
                raise InvalidFilter(f"field '{'.'.join(path)}': updated together with a field it is part of")


def _change(document: Document, path: Path, change: Change) -> None:
    """Replace the value at the path. Missing objects on the way are made if there is a new value."""
    holder: Any = document
    for position, name in enumerate(path[:-1]):
        below = _get(holder, name)
        if below is MISSING:
            value = change(MISSING)
            if value is not MISSING:
                for inner in reversed(path[position + 1 :]):
                    value = {inner: value}
                _put(holder, name, value, path)
            return
        holder = below
    old = _get(holder, path[-1])
    new = change(old)
    if path == ("id",) and not same(old, new):
        raise InvalidFilter("field 'id': cannot be changed")
    if new is not MISSING:
        _put(holder, path[-1], new, path)
    elif old is not MISSING:
        _remove(holder, path[-1])


def _get(holder: Any, name: str) -> Any:
    if isinstance(holder, dict):
        return holder.get(name, MISSING)
    if isinstance(holder, list):
        index = index_of(name)
        return holder[index] if index is not None and index < len(holder) else MISSING
    return MISSING


def _put(holder: Any, name: str, value: Any, path: Path) -> None:
    if isinstance(holder, dict):
        holder[name] = value
        return
    index = index_of(name)
    if not isinstance(holder, list) or index is None:
        raise InvalidFilter(f"field '{'.'.join(path)}': '{name}' cannot be put into a value that is no object")
    if index >= len(holder) + _LONGEST_PADDING:
        raise InvalidFilter(f"field '{'.'.join(path)}': far beyond the end of the list")
    holder.extend([None] * (index + 1 - len(holder)))
    holder[index] = value


def _remove(holder: Any, name: str) -> None:
    """Remove a field. In a list, null takes its place, so the items after it keep their indices."""
    if isinstance(holder, list):
        holder[int(name)] = None
    else:
        del holder[name]


def _push(name: str, added: Sequence[Any]) -> Change:
    return lambda old: [*_list(name, old), *added]


def _add(name: str, added: Sequence[Any]) -> Change:
    def change(old: Any) -> Any:
        items = list(_list(name, old))
        seen = {order(item) for item in items}
        for item in added:
            if order(item) not in seen:
                seen.add(order(item))
                items.append(item)
        return items

    return change


def _pull(name: str, wanted: Any) -> Change:
    is_pulled = item_test(name, wanted)

    def change(old: Any) -> Any:
        return old if old is MISSING else [item for item in _list(name, old) if not is_pulled(item)]

    return change


def _list(name: str, old: Any) -> list[Any]:
    if old is MISSING:
        return []
    if not isinstance(old, list):
        raise InvalidFilter(f"field '{name}': is no list")
    return old


_WORDS: dict[str, Callable[[str, Any], Change]] = {
    "set": lambda name, value: lambda old: value,
    "unset": lambda name, _: lambda old: MISSING,
    "min": lambda name, value: lambda old: value if old is MISSING or order(value) < order(old) else old,
    "max": lambda name, value: lambda old: value if old is MISSING or order(value) > order(old) else old,
    "push": _push,
    "add": _add,
    "pull": _pull,
}
