"""Chooses the engines by the settings. A new engine is a package, and one line in a table here.

Only the tables know engines by name. Only the modules of chosen engines are imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from apiserver.settings.settings import EMBEDDED, Settings, SettingsError
from apiserver.stores.data_folder import DataFolder
from apiserver.stores.engine import Engine
from apiserver.stores.migrations import pending

if TYPE_CHECKING:
    from apiserver.stores.documents.base import DocumentStore
    from apiserver.stores.events.base import EventStore

#: The class of each engine, by what the setting `events` begins with.
EVENTS = {
    EMBEDDED: "apiserver.stores.events.embedded.engine:EmbeddedEngine",
    "elasticsearch://": "apiserver.stores.events.elasticsearch.engine:ElasticsearchEngine",
}
#: The class of each engine, by what the setting `documents` begins with.
DOCUMENTS = {
    EMBEDDED: "apiserver.stores.documents.sqlite.engine:SqliteEngine",
    "mongodb://": "apiserver.stores.documents.mongo.engine:MongoEngine",
    "mongodb+srv://": "apiserver.stores.documents.mongo.engine:MongoEngine",
}


def event_engine(settings: Settings) -> Engine[EventStore]:
    """The engine that `events` names. SettingsError says what is wrong with its settings."""
    return _engine(settings, "events", EVENTS)


def document_engine(settings: Settings) -> Engine[DocumentStore]:
    """The engine that `documents` names. SettingsError says what is wrong with its settings."""
    return _engine(settings, "documents", DOCUMENTS)


def _engine(settings: Settings, setting: str, table: Mapping[str, str]) -> Engine[Any]:
    begins = "".join(getattr(settings, setting).partition("://")[:2])
    try:
        if begins not in table:
            forms = dict.fromkeys(resolve_name(name).form for begins, name in table.items() if begins != EMBEDDED)
            raise ValueError(f"neither '{EMBEDDED}' nor an address such as {' or '.join(forms)}")
        engine: Engine[Any] = resolve_name(table[begins])(settings)
    except ValueError as error:
        raise SettingsError(f"{setting}: {error}") from None
    return engine


async def advice(settings: Settings) -> list[str]:
    """What people should set in the engines themselves, in a sentence each."""
    return [*await event_engine(settings).advice(), *await document_engine(settings).advice()]


def check(settings: Settings) -> None:
    """Raise SettingsError if the settings of an engine are wrong, or an engine cannot serve that many processes."""
    engines = event_engine(settings), document_engine(settings)
    if settings.workers > 1 and not all(engine.shared for engine in engines):
        events, documents = (
            " or ".join(f"{begins}…" for begins, name in table.items() if resolve_name(name).shared)
            for table in (EVENTS, DOCUMENTS)
        )
        raise SettingsError(f"workers: more than one needs events in {events} and documents in {documents}")


async def refuse_newer(settings: Settings) -> None:
    """Raise SchemaError if either engine has a schema of a newer version, or what the engines raise themselves.

    It is asked before either of them is changed.
    """
    for engine in (event_engine(settings), document_engine(settings)):
        schema = engine.schema()
        if schema is not None:
            async with schema as (target, steps):
                await pending(target, steps)


def is_address(said: str, table: Mapping[str, str]) -> bool:
    """Whether an argument of the command line, such as mongodb://host/database, is for an engine of the table."""
    return f"{said.partition(':')[0]}://" in table


def places() -> str:
    """What can be copied from and to, for people."""
    addresses = [f"{begins}…" for begins in dict.fromkeys([*EVENTS, *DOCUMENTS]) if begins != EMBEDDED]
    return f"a data folder, {', '.join(addresses[:-1])} or {addresses[-1]}"


def owned(settings: Settings, folder: DataFolder) -> AbstractContextManager[None]:
    """Keeps other servers from the folder inside the block, if documents are in it; EventStoreError if one uses it.

    An embedded event store locks the folder itself. So this only locks it if events are elsewhere.
    """
    only_documents = settings.documents == EMBEDDED and settings.events != EMBEDDED
    return locked(folder) if only_documents else nullcontext()


@contextmanager
def locked(folder: DataFolder) -> Iterator[None]:
    """Lock the folder inside the block; EventStoreError if a server with an embedded store uses it."""
    from apiserver.stores.events.lock import FolderLock

    folder.events.mkdir(parents=True, exist_ok=True)
    lock = FolderLock(folder.events)
    lock.take()
    try:
        yield
    finally:
        lock.release()
