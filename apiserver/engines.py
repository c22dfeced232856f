"""Chooses the engines by the settings. Only this module knows them by name; it imports only those that are used."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

from apiserver.data_folder import DataFolder
from apiserver.settings import Settings, elasticsearch_address, mongo_address
from apiserver.stores.addresses import EMBEDDED
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.events.base import EventStore
from apiserver.stores.migrations import Step, Target, steps_of
from apiserver.stores.reserve import Reserve


def document_store(settings: Settings, folder: DataFolder) -> DocumentStore:
    """The document store, not open yet."""
    uri = mongo_address(settings)
    if uri is not None:
        from apiserver.stores.documents.mongo.store import MongoDocumentStore

        return MongoDocumentStore(uri, migrate=settings.migrate_at_start)
    from apiserver.stores.documents.sqlite.store import SqliteDocumentStore

    return SqliteDocumentStore(
        folder.documents, fsync=settings.durability == "fsync", reserve=_reserve(settings, folder)
    )


def event_store(settings: Settings, folder: DataFolder) -> EventStore:
    """The event store, not open yet."""
    address = elasticsearch_address(settings)
    if address is not None:
        from apiserver.stores.events.elasticsearch.store import ElasticsearchEventStore

        return ElasticsearchEventStore(
            address, strict=settings.consistency == "strict", migrate=settings.migrate_at_start
        )
    from apiserver.stores.events.embedded.store import EmbeddedEventStore

    return EmbeddedEventStore(
        folder.events,
        fsync=settings.durability == "fsync",
        merge_points=settings.merge_events,
        max_unmerged_bytes=settings.max_unmerged_bytes,
        reserve=_reserve(settings, folder),
    )


def _reserve(settings: Settings, folder: DataFolder) -> Reserve:
    return Reserve(folder.reserve, settings.reserve_bytes)


@contextmanager
def owned(settings: Settings, folder: DataFolder) -> Iterator[None]:
    """Keep other servers from the folder inside the block, if documents are in it; EventStoreError if one uses it.

    An embedded event store locks the folder itself. So this only locks it if events are elsewhere.
    """
    if settings.documents == EMBEDDED and settings.events != EMBEDDED:
        with locked(folder):
            yield
    else:
        yield


@contextmanager
def locked(folder: DataFolder) -> Iterator[None]:
    """Lock the folder inside the block; EventStoreError if a server with an embedded store uses it."""
    from apiserver.stores.events.embedded.lock import FolderLock

    folder.events.mkdir(parents=True, exist_ok=True)
    lock = FolderLock(folder.events)
    lock.take()
    try:
        yield
    finally:
        lock.release()


@asynccontextmanager
async def schemas(settings: Settings) -> AsyncIterator[dict[str, tuple[Target, list[Step]]]]:
    """The schemas of Elasticsearch and MongoDB, by setting, each with its migration steps.

    Embedded stores are left out: they migrate themselves.
    """
    async with AsyncExitStack() as opened:
        found: dict[str, tuple[Target, list[Step]]] = {}
        address, uri = elasticsearch_address(settings), mongo_address(settings)
        if address is not None:
            from apiserver.stores.events.elasticsearch import migrations as elasticsearch

            target = await opened.enter_async_context(elasticsearch.schema_at(address))
            found["events"] = (target, steps_of(elasticsearch.ENGINE))
        if uri is not None:
            from apiserver.stores.documents.mongo import migrations as mongo

            found["documents"] = (await opened.enter_async_context(mongo.schema_at(uri)), steps_of(mongo.ENGINE))
        yield found
