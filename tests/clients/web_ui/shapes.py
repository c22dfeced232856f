"""Shapes of JSON: what a reader of an answer counts on, and nothing else.

- `str`, `bool`, `int`, `float`, `dict`, `list`, `None`: a value of that type (`float`: any number); `object`: any value
- `{"name": shape}`: an object that has at least these fields
- `[shape]`: a list of at least one such value; `[]`: a list with nothing in it
- `Each(shape)`: an object of at least one name, each of which has such a value
- `Either(shape, shape)`: one of these
- any other value: that value
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Each:
    """An object whose names are those of users."""

    shape: Any


class Either:
    """One of several shapes."""

    def __init__(self, *shapes: Any) -> None:
        self.shapes = shapes


def misfit(value: Any, shape: Any, path: str = "data") -> str | None:
    """Where and how the value is not of the shape; None when it is."""
    match shape:
        case Each():
            fits, inside = isinstance(value, dict) and bool(value), shape.shape
            parts = [(item, inside, f"{path}.{name}") for name, item in value.items()] if fits else []
        case Either():
            misfits = [misfit(value, one, path) for one in shape.shapes]
            return None if None in misfits else " and ".join(str(one) for one in misfits)
        case dict():
            fits = isinstance(value, dict)
            missing = [name for name in shape if fits and name not in value]
            if missing:
                return f"{path} has no {missing[0]}, only {sorted(value)}"
            parts = [(value[name], inside, f"{path}.{name}") for name, inside in shape.items()] if fits else []
        case [inside]:
            fits = isinstance(value, list) and bool(value)
            parts = [(item, inside, f"{path}[{number}]") for number, item in enumerate(value)] if fits else []
        case type():
            fits, parts = _is_a(value, shape), []
        case _:
            fits, parts = value == shape and type(value) is type(shape), []
    if not fits:
        return f"{path} is {str(value)[:200]!r}, not {shape}"
    return next((wrong for part in parts if (wrong := misfit(*part)) is not None), None)


def _is_a(value: Any, kind: type) -> bool:
    if isinstance(value, bool):
        return kind in (bool, object)
    return isinstance(value, (int, float) if kind is float else kind)
