"""`retention`: deletes the events that no rule of the settings keeps, or only says which they are."""

from __future__ import annotations

import argparse
import asyncio
from contextlib import AsyncExitStack, aclosing
from dataclasses import asdict
from typing import TYPE_CHECKING

from apiserver.cli import auditing
from apiserver.cli.command import ENGINE_FLAGS, CommandError, Commands, add_command, say, say_progress
from apiserver.cli.documents import ready_folder
from apiserver.common.escaping import shown
from apiserver.settings.retention_rules import shadowed
from apiserver.settings.settings import Settings, SettingsError

if TYPE_CHECKING:
    from apiserver.operating.retention.run import Gone


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command."""
    about = "delete the events that no rule of the setting retention keeps"
    flags = ("data", *ENGINE_FLAGS, "retention", "retention_archive")
    retention = add_command(commands, "retention", _retention, about, flags)
    retention.add_argument("--dry-run", action="store_true", help="delete nothing, and say what would be deleted")
    retention.add_argument("--json", action="store_true", help="print a JSON object a line")


def _retention(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.operating.retention.run import RetentionError
    from apiserver.operating.retention.turns import Taken
    from apiserver.stores.data_folder import DataFolderError
    from apiserver.stores.documents.base import DocumentStoreError
    from apiserver.stores.events.base import EventStoreError
    from apiserver.stores.events.lock import FolderInUse
    from apiserver.stores.files.disk import FileStoreError

    if not settings.retention:
        raise SettingsError("retention: there are no rules, so all events are kept for ever")
    try:
        failures = asyncio.run(_run(settings, dry=options.dry_run, as_json=options.json))
    except FolderInUse as error:
        raise CommandError(f"{error}: {_beside_server(dry=options.dry_run)}") from error
    except (DataFolderError, DocumentStoreError, EventStoreError, FileStoreError, RetentionError, Taken) as error:
        raise CommandError(str(error)) from error
    if failures:
        raise CommandError("\n".join(["it could not delete:", *failures]))


def _beside_server(*, dry: bool) -> str:
    """What to do while a server uses the folder."""
    if dry:
        return "a server that runs answers the same at /data/retention.csv, for admins"
    return "stop the server, or let it delete by itself, with the setting retention_every"


async def _run(settings: Settings, *, dry: bool, as_json: bool) -> list[str]:
    """Open the stores, and delete, or say what would be deleted; returns what could not be."""
    from apiserver.common.sizes import counted
    from apiserver.common.times import now_ms
    from apiserver.fileserver.deletions import FileDeletions
    from apiserver.operating.retention.checks import check_archive, unknown_projects
    from apiserver.operating.retention.deleting import Amounts, delete
    from apiserver.operating.retention.run import Run
    from apiserver.stores.engines import document_engine, event_engine, owned
    from apiserver.stores.files.disk import FileStore

    folder, amounts = ready_folder(settings), Amounts()

    def tell(gone: Gone) -> None:
        amounts.add(gone)
        say(_json(gone) if as_json else _line(gone))

    async with AsyncExitStack() as opened:
        opened.enter_context(owned(settings, folder))
        events, documents = event_engine(settings).store(folder), document_engine(settings).store(folder)
        files = FileStore(folder.files, fsync=settings.durability == "fsync")
        for store in (events, documents, files):
            opened.push_async_callback(store.close)
            await store.open()
        for sentence in (*shadowed(settings.retention), *await unknown_projects(settings.retention, documents)):
            say_progress(f"apiserver: warning: {sentence}")
        check_archive(settings)
        if dry:
            async with aclosing(Run(events, documents, settings.retention, now=now_ms()).would_go()) as found:
                async for gone in found:
                    tell(gone)
            failures: list[str] = []
        else:
            deletions = FileDeletions(files, documents)
            try:
                failures = await delete(settings, events, documents, deletions, tell, gently=False)
            finally:
                for entry in amounts.entries():
                    auditing.note(settings, entry.action, company=entry.company, **entry.what)
            await deletions.work()
    if not as_json:
        done = "would be deleted" if dry else "deleted"
        say(f"{done}: {counted(amounts.events, 'events')} of {counted(amounts.tasks, 'tasks')}")
    return failures


def _json(gone: Gone) -> str:
    import orjson

    return orjson.dumps({**asdict(gone), "type": gone.type.plural}).decode()


def _line(gone: Gone) -> str:
    from apiserver.common.sizes import counted, shown_bytes
    from apiserver.common.times import iso_millis

    size = f", {shown_bytes(gone.bytes)}" if gone.bytes else ""
    times = f"{iso_millis(gone.oldest)[:10]} to {iso_millis(gone.newest)[:10]}"
    text = f"{gone.project or '-'}  {gone.name} ({gone.task})  {counted(gone.events, gone.type.plural)}{size}, {times}"
    return shown(f"{text}; kept: {gone.keep}")
