"""Which rows of a table were changed since they were read: for what is made of rows, and remembered."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager


class Unread:
    """The rows to read again; at first, all. Noted by those who write, taken by those who read, in any threads.

    Rows that were acknowledged before they are taken are among them, so what is made of them is never older.
    """

    def __init__(self, roots: Iterable[str]) -> None:
        """`roots`: the top-level fields that are read."""
        self._roots = frozenset(roots)
        self._reading = threading.Lock()
        self._noting = threading.Lock()
        self._rows: set[int] | None = None

    def add(self, rows: Collection[int], roots: Collection[str] | None = None) -> None:
        """These rows came, went, or have changed in these top-level fields (None: in any)."""
        if roots is None or not self._roots.isdisjoint(roots):
            with self._noting:
                if self._rows is not None:
                    self._rows.update(rows)

    @contextmanager
    def taken(self) -> Iterator[set[int] | None]:
        """The rows to read now, one reader at a time (None: all); all are to be read when that goes wrong."""
        with self._reading:
            with self._noting:
                taken, self._rows = self._rows, set()
            try:
                yield taken
            except BaseException:
                self.start_anew()
                raise

    def start_anew(self) -> None:
        """Let all be read the next time."""
        with self._noting:
            self._rows = None
