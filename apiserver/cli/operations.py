"""`doctor`: says what is kept, checks it, and mends it."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING

from apiserver.cli.command import ENGINE_FLAGS, CommandError, Commands, add_command, say, say_progress, whole_number
from apiserver.settings.settings import EMBEDDED, Settings

if TYPE_CHECKING:
    from apiserver.operating.doctor.examination import Examined

#: Exit codes of `doctor`.
_FINDINGS, _CANNOT_LOOK = 1, 2


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    help = "say what is kept, and check it; exit code 0: all well, 1: something is not, 2: cannot look"
    doctor = add_command(commands, "doctor", _doctor, help, ("data", *ENGINE_FLAGS))
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    doctor.add_argument("--top", type=whole_number, default=10, metavar="N", help="how many projects and tasks; 0: all")
    doctor.add_argument("--usage", action="store_true", help="only say what is kept, which is quicker")
    doctor.add_argument("--repair", action="store_true", help="mend what can be mended; no server may use the folder")
    doctor.add_argument("--yes", action="store_true", help="repair without asking")


def _doctor(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.operating.doctor.examination import CannotLook, examine
    from apiserver.stores.data_folder import DataFolder, DataFolderError
    from apiserver.stores.documents.base import DocumentStoreError
    from apiserver.stores.events.base import EventStoreError

    tell = say_progress if sys.stderr.isatty() else lambda line: None
    try:
        if EMBEDDED in (settings.events, settings.documents):
            DataFolder(settings.data).require()
        examined = asyncio.run(examine(settings, checking=not options.usage, most=options.top, say=tell))
    except (CannotLook, DataFolderError, EventStoreError, DocumentStoreError) as error:
        raise _cannot(error, settings) from error
    _print(examined, as_json=options.json)
    if options.repair and examined.repairable and (options.yes or _agrees(len(examined.repairable))):
        examined = _repaired(settings, examined)
    if any(finding.kind == "damaged-database" for finding in examined.findings):
        raise CommandError(f"a database is beyond repair. {_how_to_restore(settings)}", _FINDINGS)
    if not examined.well:
        raise CommandError("something is not well", _FINDINGS)


def _how_to_restore(settings: Settings) -> str:
    """The command that makes a new data folder of a backup."""
    place = settings.backup_to or "DEST"
    return f"Stop the server, and restore a backup into a new folder: apiserver restore {place} --data NEW --verify"


def _cannot(error: BaseException, settings: Settings) -> CommandError:
    """Why nothing can be looked at; and how a backup is restored, if a damaged database is the cause."""
    from apiserver.stores.sqlite_files import is_damage

    said, why = str(error), error.__cause__
    while why is not None and not (isinstance(why, Exception) and is_damage(why)):
        why = why.__cause__
    return CommandError(said if why is None else f"{said}. {_how_to_restore(settings)}", _CANNOT_LOOK)


def _agrees(number: int) -> bool:
    say_progress(f"Mend {number:,} of these, as the lines behind --repair say? [y/N]")
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    say_progress("Nothing was mended. Where nobody can answer, --yes agrees.")
    return False


def _repaired(settings: Settings, examined: Examined) -> Examined:
    """Repair what was found, and look again."""
    from apiserver.operating.doctor.examination import CannotLook
    from apiserver.operating.doctor.mending import mend
    from apiserver.stores.documents.base import DocumentStoreError
    from apiserver.stores.events.base import EventStoreError

    try:
        return asyncio.run(mend(settings, examined.repairable, say_progress))
    except (CannotLook, EventStoreError, DocumentStoreError, OSError) as error:
        raise _cannot(error, settings) from error


def _print(examined: Examined, *, as_json: bool) -> None:
    import orjson

    from apiserver.operating.doctor.saying import lines_of, report_of

    if as_json:
        say(orjson.dumps(report_of(examined), option=orjson.OPT_INDENT_2).decode())
    else:
        for line in lines_of(examined):
            say(line)
