"""Divides memory among uploads and downloads: each gets an equal share.

If there are a few, each moves much at once and is quick. If there are thousands, each holds little.
"""

from __future__ import annotations

#: Bytes for all uploads and downloads together, and the most and the least for one.
_ALL, _MOST, _LEAST = 16 * 2**20, 2**20, 16 * 2**10


class Shares:
    """The uploads and downloads that are under way."""

    def __init__(self) -> None:
        self._under_way: set[object] = set()

    def enter(self, one: object) -> None:
        """An upload or download begins."""
        self._under_way.add(one)

    def leave(self, one: object) -> None:
        """An upload or download has ended; a second call does nothing."""
        self._under_way.discard(one)

    def __len__(self) -> int:
        return len(self._under_way)

    @property
    def size(self) -> int:
        """Bytes that each upload or download may hold now."""
        return max(min(_ALL // max(len(self), 1), _MOST), _LEAST)
