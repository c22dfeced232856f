"""What goes in and out: `copy`, `import`, `export`, and `logs`, which prints a console."""

from __future__ import annotations

import argparse
import asyncio
import io
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from apiserver.cli.command import ENGINE_FLAGS, CommandError, Commands, add_command, add_server, say, say_progress
from apiserver.settings.settings import Settings, SettingsError
from apiserver.stores.engines import places

if TYPE_CHECKING:
    from apiserver.transfer.importing.clearml.sources import ClearmlSource

#: By what runs can be imported from beside ClearML: the name of the place, what the place is, and what is imported.
_RUN_SOURCES = {
    "tensorboard": (
        "DIR",
        "a folder; event files are looked for in it and below it",
        "runs from TensorBoard's event files",
    ),
    "mlflow": ("PATH|URL", "a folder mlruns, a file mlflow.db, or the address of a server", "runs from MLflow"),
    "wandb": ("DIR", "a folder; all .wandb files below it are read", "runs from the local files of W&B"),
    "neptune": ("DIR", "a folder that neptune-exporter wrote", "runs from Neptune, as neptune-exporter wrote them"),
    "export": ("DIR", "a folder that `apiserver export` wrote", "tasks that `apiserver export` wrote"),
    "table": ("FILE", "a file: CSV with a header, NDJSON or Parquet", "points from a table: CSV, NDJSON or Parquet"),
}
_GROWING_SOURCES = ("tensorboard", "wandb")
#: Their runs do not say which project they are of.
_ONE_PROJECT = ("tensorboard", "table")


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    copy = add_command(
        commands, "copy", _copy, "copy all events and documents to other stores", ("data", *ENGINE_FLAGS)
    )
    for flag in ("from", "to"):
        meaning = f"{places()}; by default, what the settings name"
        copy.add_argument(f"--{flag}", dest=f"copy_{flag}", nargs="+", default=[], metavar="PLACE", help=meaning)
    _add_imports(commands)
    export = add_command(commands, "export", _export, "write a project of a running server to a folder")
    export.add_argument("project", metavar="PROJECT", help="its name or its id; projects below it are exported, too")
    export.add_argument("--to", required=True, type=Path, metavar="DIR", help="the folder, which may have an export")
    export.add_argument("--files", action="store_true", help="also artifacts and images on this server")
    add_server(export)
    shown = add_command(commands, "logs", _logs, "print the console of a task of a running server")
    shown.add_argument("task", metavar="TASK", help="the task's id, or its project's name and its own: project/task")
    shown.add_argument("-f", "--follow", action="store_true", help="go on while lines come, until it is ended")
    shown.add_argument("--tail", type=int, metavar="N", help="only the last N lines, 10000 at most")
    shown.add_argument("--server", metavar="URL", help="the server's API (CLEARML_API_HOST, or ~/clearml.conf)")


def _add_imports(commands: Commands[argparse.ArgumentParser]) -> None:
    """The command `import`, with a command for each source, and the older name of `import clearml`."""
    imports = commands.add_parser("import", help="import from other trackers, tables or servers")
    sources = imports.add_subparsers(required=True, metavar="SOURCE")
    engines = ("data", *ENGINE_FLAGS)
    help = "take over all data of a ClearML server"
    _add_clearml_flags(add_command(sources, "clearml", _import_clearml, help, engines))
    _add_clearml_flags(add_command(commands, "import-clearml", _import_clearml, f"{help} (import clearml)", engines))
    for name, (place, about, what) in _RUN_SOURCES.items():
        source = add_command(sources, name, _import_runs, f"import {what}", ())
        source.set_defaults(source=name)
        source.add_argument("place", metavar=place, help=about)
        belongs = "the project of the tasks" if name in _ONE_PROJECT else "a project; the runs' own are put below it"
        source.add_argument("--project", metavar="NAME", help=belongs)
        source.add_argument("--files", action="store_true", help="import artifacts, too")
        source.add_argument(
            "--restore", action="store_true", help="bring again what was deleted or thinned on the server since"
        )
        if name in _GROWING_SOURCES:
            source.add_argument("--follow", action="store_true", help="go on while runs grow, until you press Ctrl-C")
        if name == "tensorboard":
            source.add_argument("--each-folder", action="store_true", help="each folder with event files is a task")
        if name == "table":
            source.add_argument("--metric", metavar="NAME", help="the metric of a table that has just step and value")
        source.add_argument("--report", type=Path, metavar="FILE", help="tell programs of all of it, as JSON")
        add_server(source)


def _add_clearml_flags(clearml: argparse.ArgumentParser) -> None:
    sources = {
        "mongodb": "its MongoDB: mongodb://[user[:password]@]host[:27017]",
        "elasticsearch": "its Elasticsearch: http[s]://[user[:password]@]host:9200",
        "api": "instead of these two, its API: http[s]://host[:8008]; the access key is in CLEARML_API_ACCESS_KEY and "
        "CLEARML_API_SECRET_KEY",
    }
    for flag, meaning in sources.items():
        clearml.add_argument(f"--{flag}", metavar="ADDRESS", help=meaning)
    clearml.add_argument(
        "--files", type=Path, metavar="FOLDER", help="the folder of its file server, to copy files, too"
    )
    clearml.add_argument(
        "--replace-url",
        action="append",
        default=[],
        metavar="OLD=NEW",
        help="replace OLD by NEW where addresses of files begin with it; can be given more than once",
    )


def _copy(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.stores.data_folder import DataFolderError
    from apiserver.stores.documents.base import DocumentStoreError
    from apiserver.stores.events.base import EventStoreError
    from apiserver.transfer.copying.locations import copy, location
    from apiserver.transfer.copying.retrying import CopyError

    if not options.copy_from and not options.copy_to:
        raise SettingsError("--from or --to: say where to copy from, or where to; the settings name the other")
    try:
        source, target = location(options.copy_from, settings), location(options.copy_to, settings)
    except ValueError as error:
        raise SettingsError(f"--from, --to: {error}") from None
    try:
        asyncio.run(copy(source, target, say))
    except (CopyError, DataFolderError, EventStoreError, DocumentStoreError) as error:
        raise CommandError(str(error)) from error


def _import_runs(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.transfer.importing.report import ImportFailed
    from apiserver.transfer.importing.runs.command import ImportOptions, import_runs

    wanted = ImportOptions(
        *(options.source, options.place, options.project, options.files),
        follow=getattr(options, "follow", False),
        metric=getattr(options, "metric", None),
        each_folder=getattr(options, "each_folder", False),
        report=options.report,
        restore=options.restore,
    )
    try:
        complete = import_runs(wanted, options.server, options.files_server, os.environ)
    except ValueError as error:
        raise SettingsError(f"import {options.source}: {error}") from error
    except ImportFailed as error:
        raise CommandError(str(error), 2) from error
    if not complete:
        raise CommandError("not everything could be imported")


def _export(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.transfer.exporting.command import export
    from apiserver.transfer.importing.report import ImportFailed

    servers = {"api_url": options.server, "files_url": options.files_server, "said": os.environ}
    try:
        complete = export(options.project, options.to, files=options.files, **servers)
    except ValueError as error:
        raise SettingsError(f"export: {error}") from error
    except (ImportFailed, OSError) as error:
        raise CommandError(str(error)) from error
    if not complete:
        raise CommandError("not everything could be exported")


def _import_clearml(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.stores.data_folder import DataFolderError
    from apiserver.stores.documents.base import DocumentStoreError
    from apiserver.stores.events.base import EventStoreError
    from apiserver.stores.files.disk import FileStoreError
    from apiserver.transfer.copying.retrying import CopyError
    from apiserver.transfer.importing.clearml.command import import_clearml
    from apiserver.transfer.importing.clearml.urls import replacements
    from apiserver.transfer.importing.report import ImportFailed

    try:
        source, urls = _source(options), replacements(options.replace_url)
    except ValueError as error:
        raise SettingsError(f"import clearml: {error}") from error
    try:
        complete = asyncio.run(import_clearml(source, options.files, settings, urls, say_progress))
    except (ImportFailed, CopyError, DataFolderError, EventStoreError, DocumentStoreError, FileStoreError) as error:
        raise CommandError(str(error)) from error
    if not complete:
        raise CommandError("not everything could be imported")


def _source(options: argparse.Namespace) -> ClearmlSource:
    """The source that the options name. ValueError if they name none or two."""
    from apiserver.transfer.importing.clearml.sources import Databases, OverApi, elasticsearch_of

    if options.mongodb and options.elasticsearch and not options.api:
        return Databases(options.mongodb, elasticsearch_of(options.elasticsearch))
    if not options.api or options.mongodb or options.elasticsearch:
        raise ValueError("give --mongodb and --elasticsearch, or --api")
    key, secret = (os.environ.get(f"CLEARML_API_{name}_KEY", "") for name in ("ACCESS", "SECRET"))
    if not (key and secret and "://" in options.api):
        raise ValueError("--api needs http[s]://…, and CLEARML_API_ACCESS_KEY and CLEARML_API_SECRET_KEY")
    return OverApi(options.api, key, secret)


def _logs(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.cli.console import MOST_TAIL, LogsFailed, Wanted, print_logs
    from apiserver.transfer.importing.runs.server import address

    if options.tail is not None and not 0 <= options.tail <= MOST_TAIL:
        raise SettingsError(f"--tail: {options.tail} is not between 0 and {MOST_TAIL}")
    try:
        where = address(options.server, None, os.environ)
    except ValueError as error:
        raise SettingsError(f"logs: {error}") from error

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may not have all characters
    try:
        print_logs(Wanted(options.task, options.tail, options.follow), where, sys.stdout)
    except LogsFailed as error:
        raise CommandError(str(error)) from error
    except KeyboardInterrupt:
        if not options.follow:  # who follows a console ends that so
            raise
