"""Values made of documents' large fields, remembered by row: what lists sort by, and the names that fields have.

To find a metric in all of a company's tasks means to parse hundreds of megabytes of JSON. So what was found stays in
memory until its row changes: some ten bytes a row and value, for those values that were asked for last. A value that is
being made while its row changes is not kept, so what is remembered is never older than what was acknowledged.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Any

_MOST = 8
"""Kinds of values that are remembered."""
_LONGEST = 200
"""Characters of a value that is remembered: a list may be sorted by what a script holds."""


class Kind:
    """The values of one kind, by row number: None for those not known, b"" for those that are None."""

    def __init__(self, root: str) -> None:
        self.root = root
        """The top-level field that they are made of."""
        self.values: list[Any] = []
        self.readers = 0
        self.changed: set[int] = set()
        """The rows that changed since there are readers."""

    def forget(self, rows: Iterable[int]) -> None:
        """These rows have changed."""
        for row in rows:
            if row < len(self.values):
                self.values[row] = None
            if self.readers:
                self.changed.add(row)

    def keep(self, made: dict[int, Any]) -> None:
        """Remember values that a reader made."""
        self.values += [None] * (max(made, default=-1) + 1 - len(self.values))
        for row, value in made.items():
            if row not in self.changed:
                self.values[row] = value


class Reading:
    """The values of a kind for one statement. Functions for SQL, in the order in which it asks them for a row."""

    def __init__(self, kind: Kind, lock: threading.Lock) -> None:
        self._kind = kind
        self._lock = lock
        self._made: dict[int, Any] = {}
        self._row = 0
        self.known = self._known_of(kind.values)

    def _known_of(self, values: list[Any]) -> Callable[[int], Any]:
        """The function is asked for each row of a table, so it is to do little."""

        def known(row: int) -> Any:
            """The value that is remembered, b"" for one that is None; None when it is to be made."""
            try:
                value = values[row]
            except IndexError:
                value = None
            if value is None:
                self._row = row
            return value

        return known

    def make(self, value: Any) -> Any:
        """Take note of the value of the row that was just asked for."""
        kept = b"" if value is None else value
        if not isinstance(kept, str | bytes) or len(kept) <= _LONGEST:
            self._made[self._row] = kept
        return kept

    def finish(self) -> None:
        """Have remembered what was made."""
        with self._lock:
            self._kind.keep(self._made)
            self._kind.readers -= 1
            if not self._kind.readers:
                self._kind.changed.clear()


class Derived:
    """What is remembered of all tables."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kinds: OrderedDict[tuple[str, Hashable], Kind] = OrderedDict()

    def read(self, table: str, key: Hashable, root: str) -> Reading:
        """Begin to read values of a kind that is named by a key; its `finish` ends it."""
        with self._lock:
            kind = self._kinds.setdefault((table, key), Kind(root))
            self._kinds.move_to_end((table, key))
            kind.readers += 1
            # What is being read is told what changes, as orders are made of it.
            idle = [key for key, kind in self._kinds.items() if not kind.readers]
            for one in idle[: max(0, len(self._kinds) - _MOST)]:
                del self._kinds[one]
            return Reading(kind, self._lock)

    def forget(self, table: str, rows: Collection[int], roots: Collection[str] | None = None) -> None:
        """Rows of a table have changed in these top-level fields (None: in any)."""
        if not rows:
            return
        with self._lock:
            for (name, _), kind in self._kinds.items():
                if name == table and (roots is None or kind.root in roots):
                    kind.forget(rows)
