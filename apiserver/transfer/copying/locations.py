"""Where the command line says to copy from and to, and the copy itself."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from apiserver.common.sizes import counted
from apiserver.settings.settings import EMBEDDED, Settings
from apiserver.stores import engines, formats
from apiserver.stores.data_folder import DataFolder
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.events.base import EventStore
from apiserver.transfer.copying.documents import copy_documents
from apiserver.transfer.copying.events import EventCopy
from apiserver.transfer.copying.last_values import make_last_values
from apiserver.transfer.copying.retrying import CopyError, Say


@dataclass(frozen=True, slots=True)
class Location:
    """Where events, documents or both are; `has_events` and `has_documents` say which of them."""

    settings: Settings
    has_events: bool = True
    has_documents: bool = True


def location(arguments: Sequence[str], settings: Settings) -> Location:
    """The location of a data folder and addresses of engines, in any order; or else that of the settings.

    An address stands for events or documents, a folder for what no address stands for. For example, a folder and
    mongodb://… mean the events in the folder, and the documents in MongoDB. ValueError if an argument is not valid.
    """
    if not arguments:
        return Location(settings)
    events = [argument for argument in arguments if engines.is_address(argument, engines.EVENTS)]
    documents = [argument for argument in arguments if engines.is_address(argument, engines.DOCUMENTS)]
    folders = [argument for argument in arguments if argument not in events and argument not in documents]
    if max(len(events), len(documents), len(folders)) > 1:
        raise ValueError("give at most one data folder, one address for events and one for documents")
    for argument in folders:
        if "://" in argument:
            raise ValueError(f"give {engines.places()}")
    meant = dataclasses.replace(
        settings,
        data=Path(folders[0]) if folders else settings.data,
        events=events[0] if events else EMBEDDED,
        documents=documents[0] if documents else EMBEDDED,
        events_password="",
        events_api_key="",
        documents_password="",
    )
    engines.event_engine(meant)
    engines.document_engine(meant)
    return Location(meant, bool(events or folders), bool(documents or folders))


async def copy(source: Location, target: Location, say: Say) -> None:
    """Copy what both locations have: events, documents or both. Raises CopyError or an error of a store."""
    events = source.has_events and target.has_events
    documents = source.has_documents and target.has_documents
    if not events and not documents:
        raise CopyError("nothing can be copied: one side names only events, the other one only documents")
    here, there = source.settings, target.settings
    same_events = events and engines.event_engine(here).places & engines.event_engine(there).places
    same_documents = documents and engines.document_engine(here).places & engines.document_engine(there).places
    if same_events or same_documents:
        raise CopyError("source and target are the same")
    # "strict" also shows what a server acknowledged just before it was stopped.
    seen_whole = dataclasses.replace(source.settings, migrate_at_start=False, consistency="strict")
    source = Location(seen_whole, events, documents)
    target = Location(dataclasses.replace(target.settings, migrate_at_start=True), events, documents)
    _check_data(source)
    async with opened(source) as (from_events, from_documents), opened(target) as (to_events, to_documents):
        if from_documents is not None and to_documents is not None:
            say(f"documents: {await copy_documents(from_documents, to_documents, say):,} copied")
        if from_events is not None and to_events is not None:
            events_copy = EventCopy(from_events, to_events, say)
            await events_copy.run()
            for type, count in events_copy.counts.items():
                say(f"events: {count:,} of type {type} copied")
            unstated = events_copy.unstated
            if to_documents is not None:
                await make_last_values(unstated, to_events, to_documents, say)
            elif unstated:
                of_some = counted(len(unstated), "tasks or models")
                say(f"the next server writes the last values of {of_some} soon after its start")


def _check_data(source: Location) -> None:
    folder = DataFolder(source.settings.data)
    for is_copied, engine, path in (
        (source.has_events, source.settings.events, folder.events),
        (source.has_documents, source.settings.documents, folder.documents),
    ):
        if is_copied and engine == EMBEDDED and not path.exists():
            raise CopyError(f"there is nothing to copy in the data folder '{folder.root}': it has no '{path.name}'")


@asynccontextmanager
async def opened(location: Location) -> AsyncIterator[tuple[EventStore | None, DocumentStore | None]]:
    """The open stores of a location, None for one it does not have. EventStoreError if a server uses the folder."""
    settings, folder = location.settings, DataFolder(location.settings.data)
    embedded_events = location.has_events and settings.events == EMBEDDED
    embedded_documents = location.has_documents and settings.documents == EMBEDDED
    events = engines.event_engine(settings).store(folder) if location.has_events else None
    documents = engines.document_engine(settings).store(folder) if location.has_documents else None
    async with AsyncExitStack() as opened:
        if embedded_events or embedded_documents:
            folder.make()
            formats.require(settings)
        if embedded_documents and not embedded_events:  # an embedded event store locks the folder itself
            opened.enter_context(engines.locked(folder))
        for store in (events, documents):
            if store is not None:
                opened.push_async_callback(store.close)
                await store.open()
        yield events, documents
