"""How values compare: as in MongoDB, by class first (null, number, text, object, list, boolean), then by value.

Booleans are not numbers. 1 and 1.0 are the same number. Objects are equal only if their fields are in the same order.
"""

from __future__ import annotations

from typing import Any, Final

from apiserver.stores.documents.base import InvalidDocument

NULL, NUMBER, TEXT, OBJECT, LIST, BOOLEAN = 1, 2, 3, 4, 5, 8


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""Stands for a missing field. It compares like null."""


def class_of(value: Any) -> int:
    """The class of a value. Values of different classes are never equal, and sort by their classes."""
    if isinstance(value, str):
        return TEXT
    if isinstance(value, bool):
        return BOOLEAN
    if isinstance(value, int | float):
        return NUMBER
    if value is None or value is MISSING:
        return NULL
    if isinstance(value, dict):
        return OBJECT
    if isinstance(value, list | tuple):
        return LIST
    raise InvalidDocument(f"a document cannot hold a {type(value).__name__}")


def order(value: Any) -> tuple[Any, ...]:
    """A tuple that compares with other values' tuples as the values do."""
    kind = class_of(value)
    if kind == NULL:
        return (NULL,)
    if kind == OBJECT:
        return (OBJECT, *((order(item)[0], name, order(item)) for name, item in value.items()))
    if kind == LIST:
        return (LIST, *(order(item) for item in value))
    return (kind, value)


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal."""
    return order(left) == order(right)
