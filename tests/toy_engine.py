"""An engine of documents that only tests know: SQLite's store in a file of its own, at addresses such as toy:///x.db."""

from __future__ import annotations

from pathlib import Path

from apiserver.settings.settings import Settings
from apiserver.stores.data_folder import DataFolder
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.sqlite.store import SqliteDocumentStore
from apiserver.stores.engine import Engine


class ToyEngine(Engine[DocumentStore]):
    """The file that the address names."""

    form = "toy:///path.db"

    def __init__(self, settings: Settings) -> None:
        self._file = Path(settings.documents.removeprefix("toy://"))
        if self._file.suffix != ".db":
            raise ValueError("the address names no file that ends with .db")
        super().__init__(settings, {settings.documents})

    def store(self, folder: DataFolder) -> DocumentStore:
        return SqliteDocumentStore(self._file)
