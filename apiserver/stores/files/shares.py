"""What uploads and downloads hold in memory: each an equal part of what all may hold together.

A few are quick, as they move much at once; thousands whose clients hardly move hold little each.
"""

from __future__ import annotations

#: Bytes: of all, and at most and at least of one.
_ALL, _MOST, _LEAST = 16 * 2**20, 2**20, 16 * 2**10


class Shares:
    """The uploads and downloads under way."""

    def __init__(self) -> None:
        self._under_way: set[object] = set()

    def enter(self, one: object) -> None:
        """It begins."""
        self._under_way.add(one)

    def leave(self, one: object) -> None:
        """It has ended; a second call does nothing."""
        self._under_way.discard(one)

    def __len__(self) -> int:
        return len(self._under_way)

    @property
    def size(self) -> int:
        """Bytes that each of those under way may hold now."""
        return max(min(_ALL // max(len(self), 1), _MOST), _LEAST)
