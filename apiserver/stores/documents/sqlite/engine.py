"""SQLite as the embedded engine of documents."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from apiserver.settings.settings import Settings
from apiserver.stores.data_folder import DataFolder
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.documents.sqlite.bounds import BOUNDS
from apiserver.stores.engine import Engine
from apiserver.stores.inspection import Inspection
from apiserver.stores.reserve import Reserve
from apiserver.stores.snapshots import Snapshot


class SqliteEngine(Engine[DocumentStore]):
    """A file in the data folder."""

    bounds = BOUNDS
    """Those of stores."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, {str(settings.data.resolve())})
        if settings.documents_password:
            raise ValueError("documents_password is for an engine with an address, but documents is embedded")

    def store(self, folder: DataFolder) -> DocumentStore:
        from apiserver.stores.documents.sqlite.store import SqliteDocumentStore

        reserve = Reserve(folder.reserve, self.settings.reserve_bytes)
        fsync = self.settings.durability == "fsync"
        return SqliteDocumentStore(folder.documents, fsync=fsync, reserve=reserve, bounds=self.bounds)

    def inspection(self, folder: DataFolder) -> AbstractAsyncContextManager[Inspection]:
        from apiserver.stores.documents.sqlite.inspection import looking_at

        return looking_at(folder.documents)

    def snapshot(self, folder: DataFolder) -> Snapshot:
        from apiserver.stores.documents.sqlite.snapshot import DocumentsSnapshot

        return DocumentsSnapshot(folder.documents)
