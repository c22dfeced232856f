"""`apiserver import-clearml`: from a ClearML server's databases to the stores of the settings, stage by stage."""

from __future__ import annotations

import dataclasses
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from apiserver.copying.places import Place, opened
from apiserver.data_folder import DataFolder
from apiserver.importing.documents import Writer, take_documents, take_people
from apiserver.importing.elasticsearch import ElasticsearchEvents
from apiserver.importing.events import EventImport
from apiserver.importing.files import take_files
from apiserver.importing.mapping.common import Context
from apiserver.importing.marks import Marks
from apiserver.importing.mongodb import MongoDocuments
from apiserver.importing.report import ImportFailed, Report, Say
from apiserver.importing.urls import Replacements
from apiserver.settings import Settings
from apiserver.stores import addresses
from apiserver.stores.addresses import ElasticsearchAddress
from apiserver.stores.documents.base import DocumentStore
from apiserver.stores.files.disk import FileStore


@dataclass(frozen=True, slots=True)
class Source:
    """Where a ClearML server keeps its data. `files`: the folder of its file server, if that is to come along."""

    mongodb: str
    elasticsearch: ElasticsearchAddress
    files: Path | None = None


def elasticsearch_of(said: str) -> ElasticsearchAddress:
    """The address that the command line names, as a setting would or by http://…; ValueError says what is wrong."""
    scheme, separator, rest = said.partition("://")
    if scheme in ("http", "https"):
        joint = "&" if "?" in rest else "?"
        said = f"elasticsearch{separator}{rest}{f'{joint}tls=true' if scheme == 'https' else ''}"
    return addresses.elasticsearch(said)


async def import_clearml(source: Source, settings: Settings, urls: Replacements, say: Say) -> bool:
    """Take everything; whether all of it could be. ImportFailed, or an error of a store, when it cannot go on."""
    report = Report(say)
    place = Place(dataclasses.replace(settings, migrate_at_start=True))
    async with AsyncExitStack() as stack:
        documents = MongoDocuments(source.mongodb)
        stack.push_async_callback(documents.close)
        await documents.open()
        events = ElasticsearchEvents(source.elasticsearch)
        stack.push_async_callback(events.close)
        await events.open()
        home = await _home(documents)
        to_events, to_documents = await stack.enter_async_context(opened(place))
        assert to_events is not None
        assert to_documents is not None
        marks = Marks(to_documents, say)
        writer = Writer(to_documents, marks, report, Context(home, urls))
        await take_people(documents, writer)
        await take_documents(documents, writer)
        await EventImport(events, to_events, to_documents, marks, report, urls).run()
        if source.files is not None:
            await _take_files(source.files, settings, home, report)
        await _close(report, to_documents, settings, home)
    return not report.problems


async def _home(documents: MongoDocuments) -> str:
    """The company that most tasks are of, which also gets what is nobody's."""
    companies = await documents.tasks_by_company()
    if not companies:
        raise ImportFailed("there is no company in these databases: they are not those of a ClearML server")
    return max(sorted(companies), key=lambda company: companies[company])


async def _take_files(folder: Path, settings: Settings, company: str, report: Report) -> None:
    store = FileStore(DataFolder(settings.data).files, fsync=settings.durability == "fsync")
    await store.open()
    try:
        await take_files(folder, store, company, report)
    finally:
        await store.close()


async def _close(report: Report, documents: DocumentStore, settings: Settings, home: str) -> None:
    """Say what became of everything, and what to do now."""
    report.close()
    if report.problems:
        report.say(f"{report.problems:,} problems are told above; what they do not name is all there")
    if settings.company != home:
        report.say(f"start the server with APISERVER_COMPANY={home}: its admin then is of the company that was taken")
