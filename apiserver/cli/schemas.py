"""`migrate`, which brings the schemas of the engines up to date."""

from __future__ import annotations

import argparse
import asyncio

from apiserver.cli.command import ENGINE_FLAGS, CommandError, Commands, add_command, say
from apiserver.settings.settings import EMBEDDED, Settings
from apiserver.stores.engines import document_engine, event_engine, refuse_newer


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the command."""
    flags = ("data", *ENGINE_FLAGS)
    migrate = add_command(commands, "migrate", _migrate, "bring the engines up to date", flags)
    about = "only say what would be done, also in the data folder; exit code 1 if anything"
    migrate.add_argument("--dry-run", "--check", action="store_true", help=about)


def _migrate(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.stores.data_folder import DataFolderError
    from apiserver.stores.documents.base import DocumentStoreError
    from apiserver.stores.events.base import EventStoreError
    from apiserver.stores.migrations import SchemaError

    try:
        old = _old_in_folder(settings) if options.dry_run else []
        up_to_date = asyncio.run(_migrated(settings, checking=options.dry_run)) and not old
    except (DataFolderError, SchemaError, EventStoreError, DocumentStoreError) as error:
        raise CommandError(str(error)) from error
    if not up_to_date:
        raise CommandError("the engines are not up to date")


def _old_in_folder(settings: Settings) -> list[str]:
    """Say and return what a server will bring up to date in the data folder. DataFolderError: it is of a newer one."""
    from apiserver.stores import formats
    from apiserver.stores.data_folder import DataFolder

    if EMBEDDED in (settings.events, settings.documents):
        DataFolder(settings.data).require()
    formats.require(settings)
    old = formats.older(settings)
    for problem in old:
        say(f"data: {problem}: a server brings it up to date when it starts")
    return old


async def _migrated(settings: Settings, *, checking: bool) -> bool:
    """Apply and print all missing steps, or only print them; returns whether all is up to date now."""
    from apiserver.stores.migrations import migrate, pending

    up_to_date = True
    await refuse_newer(settings)
    for setting, engine in (("events", event_engine(settings)), ("documents", document_engine(settings))):
        schema = engine.schema()
        if schema is None:
            scheme = getattr(settings, setting).partition(":")[0]
            say(f"{setting}: {scheme}, so a server brings the schema up to date by itself")
            continue
        async with schema as (target, steps):
            missing = await pending(target, steps) if checking else []
            for step in [] if checking else await migrate(target, steps):
                say(f"{setting}: {target.name}: {step.name} is applied")
            problems = [f"{step.name} is to be applied" for step in missing] or await target.problems(steps)
            for problem in problems or ["up to date"]:
                say(f"{setting}: {target.name}: {problem}")
            up_to_date &= not problems
    return up_to_date
