"""The formats of all that releases keep, each with its number, and what a release does when it meets a higher one.

Every release opens all lower numbers. It refuses higher ones before it touches anything, and says which release wrote
them. For example, a server of release 1.0.0 starts on a folder that 1.1.0 has used:

    cannot use the data folder: '/srv/data/events/events.db' has format 2 of events, which apiserver 1.1.0 wrote.
    This is apiserver 1.0.0, which reads up to 1. Nothing was changed. Start a newer release, or
    restore a backup that this release made

Where there is room, the file or the engine itself has the number. The other numbers are in the data folder's
`formats.json`, which also names the release. A server writes this file when it has opened its stores. If a folder has
no such file, no release with a higher one of these numbers has used it.

A change of what is written that older code would read wrongly takes the next number here, and a golden folder of the
release before stays in `tests/golden` for ever.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from apiserver import __version__
from apiserver.common.escaping import shown
from apiserver.settings.settings import EMBEDDED, Settings
from apiserver.stores.data_folder import DataFolder, DataFolderError, write_private
from apiserver.stores.sqlite_files import user_version

_STAMP = "formats.json"
_HEAD = "its first eight bytes: EVJRNL01"


@dataclass(frozen=True, slots=True)
class Format:
    """A format, and its number in this release."""

    name: str
    number: int
    place: str
    """What has it: a path in the data folder, or another place."""
    said: str
    """Where its number stands."""


FOLDER = Format("folder", 1, "the data folder: what lies where", _STAMP)
EVENTS = Format("events", 1, "events/events.db: chunks, log lines, samples", "PRAGMA user_version")
JOURNAL = Format("journal", 1, "events/journal-*.log", _HEAD)
DOCUMENTS = Format("documents", 1, "documents.db", "PRAGMA user_version")
FILES = Format("files", 1, "files/", _STAMP)
SECRETS = Format("secrets", 1, "token_secret", _STAMP)
AUDIT = Format("audit", 1, "audit/*.ndjson", _STAMP)
SCRUB = Format("scrub", 1, "scrub.json", _STAMP)
MANIFESTS = Format("manifests", 1, "manifests/ of a backup", "the field format")
PIECES = Format("pieces", 1, "pieces/ of a backup", "its first eight bytes: EVPIECE1")
EXPORTS = Format("exports", 1, "tasks/*/task.json of an export", "the field format")
ARCHIVES = Format("archives", 1, "files of an archive of retention", "the key format of the metadata")
BLOCKS = Format("blocks", 1, "indices in Elasticsearch", "the index PREFIX-schema")
COLLECTIONS = Format("collections", 1, "collections in MongoDB", "the collection schema_steps")

#: Those of a data folder, and their numbers.
IN_FOLDER = (FOLDER, EVENTS, JOURNAL, DOCUMENTS, FILES, SECRETS, AUDIT, SCRUB)
_NEWEST = {format.name: format.number for format in IN_FOLDER}
#: All there are.
ALL = (*IN_FOLDER, MANIFESTS, PIECES, EXPORTS, ARCHIVES, BLOCKS, COLLECTIONS)

#: No release has a higher number. What has one is damaged.
_MOST = 9999
_JOURNAL_HEAD = re.compile(rb"EVJRNL(\d\d)")


def require(settings: Settings) -> None:
    """Return if this release reads all that the settings use in the data folder, as far as the numbers say.

    What an embedded engine has left there is not looked at if the settings name another one. Nothing is changed.
    DataFolderError names the file, its format and the release that wrote it; or says that the folder was not restored
    to the end: then its files have no numbers yet.
    """
    folder = DataFolder(settings.data)
    folder.require_whole()
    release, noted = _noted(folder.root / _STAMP)
    for path, name, number in (*_numbers_in(settings), *((folder.root / _STAMP, *one) for one in noted.items())):
        newest = _NEWEST.get(name, 0)
        if number > newest:
            reads = f"reads up to {newest}" if newest else "does not know it"
            raise DataFolderError(
                f"cannot use the data folder: '{path}' has format {number} of {name}, which {release} wrote. This is"
                f" apiserver {__version__}, which {reads}. Nothing was changed. Start a newer release, or restore a"
                " backup that this release made"
            )


def older(settings: Settings) -> list[str]:
    """What a server of this release brings up to date when it opens its stores: a sentence for each file."""
    return [
        f"'{path}' has format {number} of {name}, which an older release wrote"
        for path, name, number in _numbers_in(settings)
        if number < _NEWEST[name]
    ]


def note(folder: DataFolder) -> None:
    """Note the release and its formats, once the stores are open. If the disk takes nothing, the next start does it."""
    noted = {"release": __version__, "formats": _NEWEST}
    path, text = folder.root / _STAMP, f"{json.dumps(noted, indent=2)}\n"
    with suppress(OSError):
        if not path.exists() or path.read_text("utf-8") != text:
            write_private(path, text)


def _noted(path: Path) -> tuple[str, dict[str, int]]:
    """Which release has used the folder, for people, and the numbers that it noted."""
    try:
        noted = json.loads(path.read_bytes())
        numbers = {shown(name, longest=40): int(number) for name, number in noted["formats"].items()}
        return f"apiserver {shown(str(noted['release']), longest=40)}", numbers
    except FileNotFoundError:
        return "a newer release", {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise DataFolderError(
            f"cannot use the data folder: '{path}' cannot be read ({error}). If no newer release than {__version__} has"
            " used the folder, delete this file: the next start makes it again"
        ) from error


def _numbers_in(settings: Settings) -> Iterator[tuple[Path, str, int]]:
    """The files of embedded engines that have numbers of their own, with the name of the format, and the number.

    A database without a number is damaged: SQLite says so when it opens the file.
    """
    folder = DataFolder(settings.data)
    if settings.documents == EMBEDDED:
        yield from _number_of_database(folder.documents, DOCUMENTS.name)
    if settings.events == EMBEDDED:
        yield from _number_of_database(folder.events / "events.db", EVENTS.name)
        yield from _numbers_of_journal(folder)


def _number_of_database(path: Path, name: str) -> Iterator[tuple[Path, str, int]]:
    try:
        number = user_version(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise DataFolderError(f"cannot use the data folder: '{path}' cannot be read: {error.strerror}") from error
    if number is None:
        return
    if number > _MOST:
        raise DataFolderError(
            f"cannot use the data folder: '{path}' is damaged: it says that it has format {number} of {name}, a number"
            " that no release has. Nothing was changed. Restore a backup"
        )
    yield path, name, number


def _numbers_of_journal(folder: DataFolder) -> Iterator[tuple[Path, str, int]]:
    for path in sorted(folder.events.glob("journal-*.log")):
        try:
            with open(path, "rb") as file:
                found = _JOURNAL_HEAD.fullmatch(file.read(8))
        except FileNotFoundError:  # a server that uses the folder has just merged it
            continue
        except OSError as error:
            raise DataFolderError(f"cannot use the data folder: '{path}' cannot be read: {error.strerror}") from error
        if found is not None:
            yield path, JOURNAL.name, int(found[1])
