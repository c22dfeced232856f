"""`apiserver import clearml`: imports from a ClearML server into the stores of the settings, stage by stage."""

from __future__ import annotations

import dataclasses
from contextlib import AsyncExitStack
from pathlib import Path

from apiserver.common.sizes import counted
from apiserver.settings.settings import Settings
from apiserver.stores.data_folder import DataFolder
from apiserver.stores.files.disk import FileStore
from apiserver.transfer.copying.last_values import make_last_values
from apiserver.transfer.copying.locations import Location, opened
from apiserver.transfer.copying.retrying import Say
from apiserver.transfer.importing.clearml.documents import DocumentWriter, take_documents, take_people
from apiserver.transfer.importing.clearml.events import EventImport
from apiserver.transfer.importing.clearml.files import take_files
from apiserver.transfer.importing.clearml.mapping.common import Context
from apiserver.transfer.importing.clearml.marks import ImportMarks
from apiserver.transfer.importing.clearml.sources import ClearmlSource
from apiserver.transfer.importing.clearml.urls import Replacements
from apiserver.transfer.importing.report import Report


async def import_clearml(
    source: ClearmlSource, files: Path | None, settings: Settings, urls: Replacements, say: Say
) -> bool:
    """Import everything; returns whether that was possible. Raises ImportFailed or an error of a store to give up.

    `files` is the folder of ClearML's file server, if files are to be imported, too.
    """
    report = Report(say)
    location = Location(dataclasses.replace(settings, migrate_at_start=True))
    async with AsyncExitStack() as stack:
        documents, events = await source.open(stack)
        home = await documents.home()
        to_events, to_documents = await stack.enter_async_context(opened(location))
        assert to_events is not None
        assert to_documents is not None
        marks = ImportMarks(to_documents, say)
        writer = DocumentWriter(to_documents, marks, report, Context(home, urls, documents.escaped))
        await take_people(documents, writer)
        await take_documents(documents, writer)
        await EventImport(events, to_events, to_documents, marks, report, urls).run()
        report.say("the tasks' last values are made anew from the events")
        owners = {owner async for owner in to_events.owners_to_restate(of_all=True)}
        await make_last_values(owners, to_events, to_documents, say)
        if files is not None:
            await _take_files(files, settings, home, report)
    _close(report, settings, home)
    return not report.problems


async def _take_files(folder: Path, settings: Settings, company: str, report: Report) -> None:
    store = FileStore(DataFolder(settings.data).files, fsync=settings.durability == "fsync")
    await store.open()
    try:
        await take_files(folder, store, company, report)
    finally:
        await store.close()


def _close(report: Report, settings: Settings, home: str) -> None:
    """Say what was imported, and what to do next."""
    report.close()
    if report.problems:
        report.say(f"everything was imported but for {counted(report.problems, 'problems')}, listed above")
    if settings.company != home:
        report.say(f"start the server with APISERVER_COMPANY={home}, so that its admin is in the imported company")
