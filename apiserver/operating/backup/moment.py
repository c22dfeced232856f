"""One moment of a data folder that a server may be writing to: events, documents, and then files.

Events and documents are of the same moment. First each database is looked at, and a read of it begins. Then the
segments of the journal are opened. If afterwards nothing was committed to either database since the first look, both
are as they were when the newest segment was measured, and that is the moment. Otherwise it begins again: all of it
takes about a millisecond. What was acknowledged before the moment is in a database or in the journal.

Files come later, because what refers to a file is written after the file: so each file that an event or a document of
the moment names is found, unless it is deleted while files are listed. No file changes: it is replaced as a whole. New
files are opened as they are listed, as many as this process may open, and so are read even if they are deleted
meanwhile. Files that are uploaded after the moment may be there, too. Nobody refers to them.
"""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from apiserver.operating.backup.manifest import Stamp
from apiserver.operating.backup.progress import Say
from apiserver.operating.backup.storage import BackupError
from apiserver.settings.settings import Settings
from apiserver.stores.data_folder import DataFolder
from apiserver.stores.engines import document_engine, event_engine
from apiserver.stores.snapshots import Part, Snapshot, SnapshotError

#: In the data folder, what belongs to the engines, to the running server, or to nobody.
_NOT_FILES = ("address", "backup_checks", "events", "exports", "metrics", "reserve", "restoring", "scrub.json")
_DOCUMENTS = "documents.db"
#: Further down, what belongs to the running server.
_OF_THE_SERVER = ("files/incoming", "files/lock", "audit/lock")
_TRIES = 10_000
#: Files that are left for all else that the process opens.
_SPARE = 64


@dataclass(slots=True)
class FolderFile:
    """A file in the data folder. If it was opened, it is read as it was then, even if it is deleted."""

    path: str
    size: int
    stamp: Stamp
    place: Path
    descriptor: int = -1

    def read(self, start: int, size: int) -> bytes:
        """So many bytes of the file."""
        return os.pread(self.descriptor, size, start)

    def open(self) -> bool:
        """Open the file, unless it is open; False if it is gone."""
        if self.descriptor < 0:
            with suppress(FileNotFoundError):
                self.descriptor = os.open(self.place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
                status = os.fstat(self.descriptor)
                self.size, self.stamp = status.st_size, stamp_of(status)
        return self.descriptor >= 0

    def close(self) -> None:
        """Close the file."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


class Moment:
    """The moment, from `begin` until `close`. Events and documents are in the data folder of the settings."""

    def __init__(self, settings: Settings) -> None:
        self._folder = DataFolder(settings.data)
        self._snapshots: list[Snapshot] = []
        try:
            for engine in (event_engine(settings), document_engine(settings)):
                snapshot = engine.snapshot(self._folder)
                assert snapshot is not None
                self._snapshots.append(snapshot)
        except SnapshotError as error:
            self.close()
            raise BackupError(str(error), "a database cannot be read") from error

    def begin(self) -> None:
        """Find the moment."""
        for _ in range(_TRIES):
            for snapshot in self._snapshots:
                snapshot.begin()
            if all(snapshot.holds() for snapshot in self._snapshots):
                return
        often = "is written to so often that no moment was found"
        raise BackupError(f"{self._folder.root} {often}", f"the data folder {often}")

    def parts(self) -> list[Part]:
        """The files of the engines."""
        return [part for snapshot in self._snapshots for part in snapshot.parts()]

    def counts(self) -> dict[str, int]:
        """How much the engines have."""
        return {name: count for snapshot in self._snapshots for name, count in snapshot.counts().items()}

    def close(self) -> None:
        """End the moment of events and documents. Files that were found can be read on."""
        while self._snapshots:
            self._snapshots.pop().close()


def find_files(folder: DataFolder, is_known: Callable[[FolderFile], bool], say: Say) -> list[FolderFile]:
    """All files but those of engines. A file that is not known is opened, as far as the process may open more."""
    room = _most_open() - _SPARE
    files = []
    for file in walk(folder, say):
        if not is_known(file) and room > 0:
            if not file.open():
                continue
            room -= 1
        files.append(file)
    return files


def stamp_of(status: os.stat_result) -> Stamp:
    """The times of a file, which tell whether it has changed."""
    return Stamp(status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def walk(folder: DataFolder, say: Say) -> Iterator[FolderFile]:
    """Regular files, by folder and name. Symbolic links are not followed, but for the folder of files itself."""
    waiting: list[tuple[Path, str]] = [(folder.root.resolve(), "")]
    while waiting:
        place, path = waiting.pop()
        try:
            entries = sorted(os.scandir(place), key=lambda entry: entry.name)
        except FileNotFoundError:
            continue
        for entry in entries:
            if _is_left_out(path, entry.name):
                continue
            inner = f"{path}{entry.name}"
            if path == "" and entry.name == folder.files.name:
                waiting.append((folder.files.resolve(), f"{inner}/"))
                continue
            with suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    waiting.append((Path(entry.path), f"{inner}/"))
                elif stat.S_ISREG(status.st_mode):
                    yield FolderFile(inner, status.st_size, stamp_of(status), Path(entry.path))
                else:
                    say(f"left out: {inner} is neither a file nor a folder, but a link or a device")


def _is_left_out(path: str, name: str) -> bool:
    if path == "":
        return name in _NOT_FILES or name.startswith((_DOCUMENTS, "."))
    return f"{path}{name}" in _OF_THE_SERVER


def _most_open() -> int:
    """How many files this process may open, after it has raised that as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return min(soft, 100_000) if soft != resource.RLIM_INFINITY else 100_000
