"""Cuts items into parts of bounded size, so that requests and answers are bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def in_parts(items: Iterable[Item], size: Callable[[Item], int], most: int) -> Iterator[list[Item]]:
    """The items in their order, in parts of up to `most` size together. A larger item is a part by itself."""
    part: list[Item] = []
    room = most
    for item in items:
        taken = size(item)
        if part and taken > room:
            yield part
            part, room = [], most
        part.append(item)
        room -= taken
    if part:
        yield part
