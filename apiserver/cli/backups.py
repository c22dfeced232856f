"""`backup` and `restore`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from apiserver.cli.command import CommandError, Commands, add_command, say, say_progress
from apiserver.common.escaping import shown
from apiserver.common.sizes import counted, shown_bytes
from apiserver.settings.settings import EMBEDDED, Settings, SettingsError

if TYPE_CHECKING:
    from apiserver.operating.backup.manifest import Named
    from apiserver.operating.backup.storage import Storage


#: Hours from one gentle check to the next, if the settings say that the server makes none.
_WEEK = 168


def add(commands: Commands[argparse.ArgumentParser]) -> None:
    """Add the commands."""
    about = "back up the data folder, and what is in engines, also while servers use them"
    backup = add_command(commands, "backup", _backup, about, ("data", "events", "documents"))
    backup.add_argument("destination", metavar="DEST", help="a folder of backups, or s3://bucket/prefix")
    instead = backup.add_mutually_exclusive_group()
    instead.add_argument("--check", action="store_true", help="instead, read and check all that is at DEST")
    instead.add_argument("--list", action="store_true", help="instead, list the backups that are at DEST")
    _add_key(backup)
    backup.add_argument("--keep", type=int, metavar="N", help="afterwards, delete all backups but the newest N")
    backup.add_argument(
        "--gently",
        action="store_true",
        help="with --check: read slowly, go on where the last such check ended, and remember what the next backup"
        " has to copy anew, in the data folder",
    )
    # For the server that makes a backup by this command: /health tells anybody why it failed.
    backup.add_argument("--tell", action="store_true", help=argparse.SUPPRESS)
    work = "if events and documents are in engines: a folder for a copy of them, which stays for the next backup; else"
    backup.add_argument("--work", type=Path, metavar="DIR", help=f"{work} the setting backup_work")
    backup.add_argument("--fast", action="store_true", help="take all the time of a processor, and leave servers less")
    restore = add_command(commands, "restore", _restore, "make a data folder of a backup", ("data",))
    restore.add_argument("destination", metavar="DEST", help="a folder of backups, or s3://bucket/prefix")
    _add_key(restore)
    restore.add_argument("--at", metavar="TIME", help="the backup whose time begins so; else the newest one")
    restore.add_argument("--verify", action="store_true", help="afterwards, read and count all that was restored")


def _add_key(parser: argparse.ArgumentParser) -> None:
    help = "a file with the key that signs backups: others are refused; else the setting backup_key"
    parser.add_argument("--key-file", type=Path, metavar="FILE", help=help)


def _place(settings: Settings, options: argparse.Namespace) -> Storage:
    """The destination, with the key of the command or of the settings."""
    from apiserver.operating.backup.destinations import storage

    key = settings.backup_key
    if options.key_file is not None:
        try:
            key = options.key_file.read_text("utf-8").strip()
        except OSError as error:
            raise SettingsError(f"--key-file: {options.key_file}: {error.strerror}") from error
        except UnicodeError as error:
            raise SettingsError(f"--key-file: {options.key_file}: {error}") from error
        if len(key) < 32:
            raise SettingsError(f"--key-file: the key in {options.key_file} is shorter than 32 characters")
    return storage(options.destination, key)


def _backup(settings: Settings, options: argparse.Namespace) -> None:
    _refuse_contradictions(options)
    with _failing(tell=options.tell):
        place = _place(settings, options)
        if options.list:
            _list(place)
        elif options.gently:
            _check_gently(settings, place)
        elif options.check:
            _check(place)
        else:
            _make(settings, options, place)


def _refuse_contradictions(options: argparse.Namespace) -> None:
    """SettingsError for flags that do not go together."""
    if options.keep is not None and options.keep < 1:
        raise SettingsError("--keep: at least one backup has to be kept")
    if options.keep is not None and (options.list or options.check):
        raise SettingsError(
            "--keep: it deletes older backups after one was made, so it does not go with --list or --check"
        )
    if options.gently and not options.check:
        raise SettingsError("--gently: it goes only with --check")


@contextmanager
def _failing(*, tell: bool = False) -> Iterator[None]:
    """Errors of the block become CommandErrors. `tell`: also say in a line of its own what anybody may know of them."""
    from apiserver.operating.backup.storage import TELLS, BackupError
    from apiserver.stores.data_folder import DataFolderError

    try:
        yield
    except DataFolderError as error:
        raise CommandError(str(error)) from error
    except BackupError as error:
        if tell:
            say_progress(f"{TELLS}{error.told}")
        raise CommandError(shown(str(error))) from error


def _make(settings: Settings, options: argparse.Namespace, place: Storage) -> None:
    """Make a backup, delete old ones, and read some of what is at the destination again."""
    from apiserver.operating.backup import forgetting, rereading
    from apiserver.operating.backup.making import make
    from apiserver.operating.backup.progress import GENTLY, Progress
    from apiserver.stores.data_folder import DataFolder

    folder = DataFolder(settings.data)
    if EMBEDDED in (settings.events, settings.documents):
        folder.require()
    if not options.fast:
        os.nice(19)
    progress = Progress(share=1.0 if options.fast else GENTLY)
    work = options.work or (Path(settings.backup_work) if settings.backup_work else None)
    backup = make(settings, place, progress, work=work)
    say(_line(backup))
    say(f"{shown_bytes(backup.manifest.copied)} were copied")
    if options.keep is not None:
        backups, pieces = forgetting.forget(place, options.keep)
        say(f"deleted: {counted(backups, 'older backups')}, {counted(pieces, 'pieces')}")
    rereading.look_again(place, folder, progress)


def _check(place: Storage) -> None:
    """Read all that is at the destination."""
    from apiserver.operating.backup import checking
    from apiserver.operating.backup.progress import Progress

    wrong = checking.check(place, Progress())
    _fail_for([*map(str, wrong), *checking.advice(wrong)])
    say("all backups are well")


def _check_gently(settings: Settings, place: Storage) -> None:
    """Read on, slowly, where the last such check ended."""
    from apiserver.operating.backup import checking, manifest, rereading
    from apiserver.operating.backup.progress import GENTLY, Progress
    from apiserver.operating.backup.storage import BackupError
    from apiserver.stores.data_folder import DataFolder

    os.nice(19)
    every = settings.backup_check_every or _WEEK
    state = rereading.read_on(place, DataFolder(settings.data), every, Progress(share=GENTLY))
    say(f"{counted(state.pieces, 'pieces')} were read")
    _fail_for([*state.wrong, checking.REMEMBERED_ADVICE] if state.wrong else [])
    if not manifest.names(place):
        raise BackupError(f"there is no backup at {place.address}")
    say("all backups are well")


def _list(place: Storage) -> None:
    """Print a line for each backup; CommandError with a line for each one that is refused, and what is no backup."""
    from apiserver.operating.backup import checking

    refused = []
    is_empty = True
    for backup in checking.all_of(place):
        is_empty = False
        if isinstance(backup, str):
            refused.append(shown(backup))
        else:
            say(_line(backup) + (", signed" if backup.is_signed else ""))
    if is_empty:
        say(f"there is no backup at {shown(place.address)}")
    if refused:
        raise CommandError("\n".join(["not used:", *refused]))


def _line(backup: Named) -> str:
    """A backup for people, in a line. Whoever made the manifest chose the names in it."""
    counts = ", ".join(counted(count, name) for name, count in backup.manifest.counts.items())
    return f"{backup.id}  {shown_bytes(backup.manifest.size)}: {shown(counts)}"


def _restore(settings: Settings, options: argparse.Namespace) -> None:
    from apiserver.operating.backup import manifest, restoring
    from apiserver.operating.backup.progress import Progress

    with _failing():
        place = _place(settings, options)
        chosen = manifest.choose(place, options.at)
        restoring.restore(place, chosen.manifest, settings.data, Progress())
        say(f"restored: {_line(chosen)}")
        if options.verify:
            _fail_for(restoring.verify(settings, chosen.manifest, settings.data, Progress()))
            say("all of it was read, and is what the backup says")


def _fail_for(problems: Iterable[str]) -> None:
    """CommandError if there are problems."""
    if lines := [shown(problem) for problem in problems]:
        raise CommandError("\n".join(["not all is well:", *lines]))
