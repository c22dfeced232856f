"""Remembers which fields of documents are small although they may be large: to read them needs no thread.

Fields are small if what was last read of them was short, and the document got no long field since. If a write comes
while they are read, what is remembered may be out of date. Then one more read is done without a thread, and corrects
that. A document that is deleted is forgotten: also if it was being read meanwhile, as the store then looks whether
documents were deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

#: Bytes of JSON that take less time to read and decode than handing the work to a thread and back takes.
SMALL = 32 * 2**10
#: Documents that are remembered.
MOST = 10_000


class SmallFields:
    """The small fields of up to `most` documents, by table and id. Any thread may use it."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: dict[tuple[str, str], frozenset[str]] = {}

    def has(self, table: str, id: str, names: Collection[str]) -> bool:
        """Whether these fields of a document are known to be small."""
        return self._known.get((table, id), frozenset()).issuperset(names)

    def read(self, table: str, id: str, names: Collection[str], size: int) -> None:
        """So many bytes were read of these fields of a document."""
        if size > SMALL:
            self.forget(table, id)
            return
        if len(self._known) >= self._most:
            self._known.clear()
        self._known[table, id] = self._known.get((table, id), frozenset()).union(names)

    def wrote(self, table: str, id: str, values: Iterable[object]) -> None:
        """These values are being written to columns of a document."""
        if any(isinstance(value, str) and len(value) > SMALL for value in values):
            self.forget(table, id)

    def forget(self, table: str, id: str) -> None:
        """Know nothing of a document any more."""
        self._known.pop((table, id), None)
