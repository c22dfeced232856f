"""Which engine keeps what: the one place that knows the engines by name."""

from __future__ import annotations

from apiserver.data_folder import DataFolder
from apiserver.settings import Settings
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.events.base import EventStore


def document_store(settings: Settings, folder: DataFolder) -> DocumentStore:
    """The store of documents, not yet open."""
    from apiserver.stores.documents.sqlite.store import SqliteDocumentStore

    return SqliteDocumentStore(folder.documents, fsync=settings.durability == "fsync")


def event_store(settings: Settings, folder: DataFolder) -> EventStore:
    """The store of events, not yet open."""
    from apiserver.stores.events.embedded.store import EmbeddedEventStore

    return EmbeddedEventStore(
        folder.events,
        fsync=settings.durability == "fsync",
        merge_points=settings.merge_events,
        max_unmerged_bytes=settings.max_unmerged_bytes,
    )
