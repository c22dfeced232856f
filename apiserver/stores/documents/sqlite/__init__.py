"""Documents in one SQLite file: the default, for one server process."""

from apiserver.stores.documents.sqlite.store import SqliteDocumentStore

__all__ = ["SqliteDocumentStore"]
