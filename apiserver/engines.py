"""Chooses the engines by the settings. Only this module knows them by name; it imports only those that are used."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from apiserver.data_folder import DataFolder
from apiserver.settings import Settings, SettingsError
from apiserver.stores import addresses
from apiserver.stores.addresses import EMBEDDED
from apiserver.stores.migrations import Step, Target, steps_of
from apiserver.stores.reserve import Reserve

if TYPE_CHECKING:
    from apiserver.stores.documents.base import DocumentStore
    from apiserver.stores.events.base import EventStore

#: What addresses of engines begin with, before "://".
EVENT_ENGINES = ("elasticsearch",)
DOCUMENT_ENGINES = ("mongodb", "mongodb+srv")
#: What can be copied from and to, for people.
PLACES = "a data folder, elasticsearch://… or mongodb://…"


def check(settings: Settings) -> None:
    """Raise SettingsError if the address of an engine is wrong, or an engine cannot serve that many processes."""
    for name, address in (("events", event_address), ("documents", document_address)):
        try:
            address(settings)
        except ValueError as error:
            raise SettingsError(f"{name}: {error}") from None
    if settings.workers > 1 and EMBEDDED in (settings.events, settings.documents):
        raise SettingsError("workers: more than one needs events on Elasticsearch and documents on MongoDB")


def event_address(settings: Settings) -> addresses.ElasticsearchAddress | None:
    """The address of Elasticsearch; None if events are in the data folder. ValueError if the address is wrong."""
    if settings.events != EMBEDDED:
        return addresses.elasticsearch(
            settings.events, password=settings.events_password, api_key=settings.events_api_key
        )
    if settings.events_password or settings.events_api_key:
        raise ValueError("events_password and events_api_key are for Elasticsearch, but events is embedded")
    return None


def document_address(settings: Settings) -> str | None:
    """The URI of MongoDB; None if documents are in the data folder. ValueError if the address is wrong."""
    if settings.documents != EMBEDDED:
        return addresses.mongo(settings.documents, password=settings.documents_password)
    if settings.documents_password:
        raise ValueError("documents_password is for MongoDB, but documents is embedded")
    return None


def same_events(one: Settings, other: Settings) -> bool:
    """Whether both settings name the same event store."""
    first, second = event_address(one), event_address(other)
    if first is None or second is None:
        return first is second and one.data.resolve() == other.data.resolve()
    return first.prefix == second.prefix and bool(set(first.hosts) & set(second.hosts))


def same_documents(one: Settings, other: Settings) -> bool:
    """Whether both settings name the same document store."""
    first, second = document_address(one), document_address(other)
    return first == second and (first is not None or one.data.resolve() == other.data.resolve())


def document_store(settings: Settings, folder: DataFolder) -> DocumentStore:
    """The document store, not open yet."""
    uri = document_address(settings)
    if uri is not None:
        from apiserver.stores.documents.mongo.store import MongoDocumentStore

        return MongoDocumentStore(uri, migrate=settings.migrate_at_start)
    from apiserver.stores.documents.sqlite.store import SqliteDocumentStore

    return SqliteDocumentStore(
        folder.documents, fsync=settings.durability == "fsync", reserve=_reserve(settings, folder)
    )


def event_store(settings: Settings, folder: DataFolder) -> EventStore:
    """The event store, not open yet."""
    address = event_address(settings)
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
        address, uri = event_address(settings), document_address(settings)
        if address is not None:
            from apiserver.stores.events.elasticsearch import migrations as elasticsearch

            target = await opened.enter_async_context(elasticsearch.schema_at(address))
            found["events"] = (target, steps_of(elasticsearch.ENGINE))
        if uri is not None:
            from apiserver.stores.documents.mongo import migrations as mongo

            found["documents"] = (await opened.enter_async_context(mongo.schema_at(uri)), steps_of(mongo.ENGINE))
        yield found
