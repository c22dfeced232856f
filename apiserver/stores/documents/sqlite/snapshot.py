"""The documents of a data folder as they are at one moment: the pages of their file."""

from __future__ import annotations

from pathlib import Path

from apiserver.stores.snapshots import Part, Snapshot, SnapshotError
from apiserver.stores.sqlite_pages import Pages, reading

#: Tables of collections. Other tables have names with a colon, or are SQLite's own.
_COLLECTIONS = (
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB '*:*' AND name NOT GLOB 'sqlite_*'"
)


class DocumentsSnapshot(Snapshot):
    """The moment of a file of documents."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise SnapshotError(f"there are no documents: {path} is missing")
        self._path = path
        self._pages = Pages(path)

    def begin(self) -> None:
        with reading(self._path):
            self._pages.begin()

    def holds(self) -> bool:
        return self._pages.holds()

    def close(self) -> None:
        self._pages.close()

    def parts(self) -> list[Part]:
        return [Part(self._path.name, self._pages.size, self._pages.read, changes_in_place=True)]

    def counts(self) -> dict[str, int]:
        ask = self._pages.connection.execute
        with reading(self._path):
            names = [name for (name,) in ask(_COLLECTIONS)]
            return {"documents": sum(ask(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names)}
