"""The files of the audit log: lines are appended, by any number of processes, and a full file is followed by another.

A process that appends holds a lock of the folder. It knows the last line unless another process has appended since,
which it sees by the size of the newest file. All lines of a call are written with one write. If that fails, because the
disk is full, what was written of it is cut off again.

A line without an end is of a process or machine that crashed. It stays, and gets an end: the next line carries its
hash, so that nobody can add such a line later.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from apiserver.operating.audit.entries import NOTHING, Entry, hash_of, line_of, parsed
from apiserver.stores.syncing import sync_folder

#: Bytes of a file after which another is begun.
FULL = 16 * 2**20
_ENDING = ".ndjson"
#: Bytes that are read at a time from the end of a file.
PIECE = 64 * 2**10


def files_of(folder: Path) -> list[Path]:
    """The files of the log, the oldest first."""
    return sorted(path for path in folder.glob(f"*{_ENDING}") if path.stem.isdecimal()) if folder.is_dir() else []


@dataclass(slots=True)
class _End:
    """The end of the log, as this process knows it."""

    path: Path
    size: int
    number: int
    hash: str


class AuditFiles:
    """The files in one folder. With `sync`, lines survive a power loss once `append` returns.

    Beyond `most_bytes`, the oldest files are deleted.
    """

    def __init__(self, folder: Path, *, sync: bool = False, most_bytes: int = 2**30, full: int = FULL) -> None:
        self._folder = folder
        self._sync = sync
        self._most_bytes = most_bytes
        self._full = full
        self._end: _End | None = None

    def append(self, entries: Sequence[Entry]) -> None:
        """Append a line for each entry: all, or none and OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._locked():
            end = self._found_end()
            if end.size >= self._full:
                end = self._next_file(end)
                entries = [*self._forgotten(), *entries]
            self._end = self._write(end, entries)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _found_end(self) -> _End:
        """The end of the log: as it is known, unless another process has appended to it."""
        known = self._end
        if known is not None and _size(known.path) == known.size and not _next(known.path).exists():
            return known
        found = files_of(self._folder)
        return end_of(found) if found else _End(self._folder / f"{1:08}{_ENDING}", 0, 0, NOTHING)

    def _next_file(self, end: _End) -> _End:
        return _End(_next(end.path), 0, end.number, end.hash)

    def _forgotten(self) -> list[Entry]:
        """Delete the oldest files while the log is too large; the entry that says so, if any file was deleted."""
        paths = files_of(self._folder)
        sizes = {path: _size(path) for path in paths}
        deleted = []
        while len(paths) > 1 and sum(sizes[path] for path in paths) + self._full > self._most_bytes:
            path = paths.pop(0)
            path.unlink(missing_ok=True)
            deleted.append(path.name)
        return [Entry("audit.forget", what={"files": deleted})] if deleted else []

    def _write(self, end: _End, entries: Sequence[Entry]) -> _End:
        number, last, lines = end.number, end.hash, []
        for entry in entries:
            number += 1
            line = line_of(entry, number, last)
            last = hash_of(line)
            lines.append(line + b"\n")
        is_new = not end.path.exists()
        descriptor = os.open(end.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if end.size and not _ends_its_line(end.path):
                lines.insert(0, b"\n")
            content = b"".join(lines)
            try:
                write_all(descriptor, content)
            except OSError:
                os.ftruncate(descriptor, end.size)
                raise
            if self._sync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if is_new and self._sync:
            sync_folder(self._folder)
        return _End(end.path, end.size + len(content), number, last)


def end_of(paths: Sequence[Path]) -> _End:
    """The end of a log with these files."""
    number, last, torn = 0, None, 0
    for path in reversed(paths):
        for line in lines_backwards(path):
            if last is None:
                last = hash_of(line)
            said = parsed(line)
            if said is not None:
                number = said["n"] + torn
                break
            torn += 1
        if number:
            break
    return _End(paths[-1], _size(paths[-1]), number or torn, last or NOTHING)


def lines_backwards(path: Path, piece_bytes: int = PIECE) -> Iterator[bytes]:
    """The lines of a file without their ends, the last one first. Reads the file from its end in pieces."""
    with open(path, "rb") as file:
        start, rest, is_last = file.seek(0, os.SEEK_END), b"", True
        while start:
            size = min(piece_bytes, start)
            start -= size
            file.seek(start)
            piece = file.read(size) + rest
            if is_last:
                piece, is_last = piece.removesuffix(b"\n"), False
            rest, *lines = piece.split(b"\n")
            yield from reversed(lines)
        if not is_last:
            yield rest


def _next(path: Path) -> Path:
    return path.with_name(f"{int(path.stem) + 1:08}{_ENDING}")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1


def _ends_its_line(path: Path) -> bool:
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
