"""Remembers what was used last, of a bounded size."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Bounded(Generic[Key, Value]):
    """Values by their keys. What was not used for longest goes if all of them are more than `most`, by their `size`."""

    def __init__(self, most: int, size: Callable[[Key, Value], int]) -> None:
        self._room = most
        self._size = size
        self._known: OrderedDict[Key, Value] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """The value, which is used by that; None if it is not known."""
        if key in self._known:
            self._known.move_to_end(key)
        return self._known.get(key)

    def put(self, key: Key, value: Value) -> None:
        """Remember a value, in place of the one before."""
        self.drop(key)
        self._known[key] = value
        self._room -= self._size(key, value)
        while self._room < 0:
            self.drop(next(iter(self._known)))

    def drop(self, key: Key) -> None:
        """Forget a value."""
        if key in self._known:
            self._room += self._size(key, self._known.pop(key))

    def clear(self) -> None:
        """Forget everything."""
        while self._known:
            self.drop(next(iter(self._known)))
