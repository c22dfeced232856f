"""How values compare: as in MongoDB, by class first (null, number, text, object, list, boolean), then by value.

Booleans are not numbers. 1 and 1.0 are the same number. Objects are equal only if their fields are in the same order.
"""

from __future__ import annotations

import re
from typing import Any, Final

from apiserver.stores.documents.base import InvalidDocument

NULL, NUMBER, TEXT, OBJECT, LIST, BOOLEAN = 1, 2, 3, 4, 5, 8

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


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


def number_of(text: str) -> float | None:
    """The number that a text is: 0.001 for "1e-3". None if it is none."""
    return float(text) if _NUMBER.fullmatch(text) else None


def same(left: Any, right: Any) -> bool:
    """Whether two values are equal."""
    return order(left) == order(right)
