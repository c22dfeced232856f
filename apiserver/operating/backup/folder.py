"""A folder of backups. Only its owner can read it, as backups have all secrets of the server."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apiserver.operating.backup.storage import BackupError, Storage
from apiserver.stores.syncing import sync_folder

_TEMPORARY = ".unfinished"


class Folder(Storage):
    """The folder `root`, which is made when something is written to it."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    def sizes(self, folder: str) -> dict[str, int]:
        found = {}
        for path in (self.root / folder).rglob("*"):
            if path.is_file() and not path.name.endswith(_TEMPORARY):
                found[path.relative_to(self.root).as_posix()] = path.stat().st_size
        return dict(sorted(found.items()))

    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        try:
            with open(self.root / name, "rb") as file:
                file.seek(start)
                return file.read() if size is None else file.read(size)
        except OSError as error:
            raise BackupError(f"{name} cannot be read: {error.strerror}") from error

    def write(self, name: str, content: bytes) -> None:
        path = self.root / name
        temporary = path.with_name(path.name + _TEMPORARY)
        try:
            self._make(path.parent)
            file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                rest = memoryview(content)
                while rest:
                    rest = rest[os.write(file, rest) :]
                os.fsync(file)
            finally:
                os.close(file)
            os.replace(temporary, path)
            sync_folder(path.parent)
        except OSError as error:
            raise BackupError(f"{path} cannot be written: {error.strerror}") from error

    def delete(self, name: str) -> None:
        try:
            (self.root / name).unlink(missing_ok=True)
        except OSError as error:
            raise BackupError(f"{name} cannot be deleted: {error.strerror}") from error

    @contextmanager
    def owned(self) -> Iterator[None]:
        try:
            self._make(self.root)
            lock = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise BackupError(f"{self.root} cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for left in self.root.rglob(f"*{_TEMPORARY}"):  # of a backup that was killed
                left.unlink(missing_ok=True)
            yield
        except BlockingIOError:
            raise BackupError(f"another backup to {self.root} is under way") from None
        finally:
            os.close(lock)

    def _make(self, folder: Path) -> None:
        """Make the folder and those above it, so that they survive a loss of power."""
        if not folder.is_dir():
            if folder != self.root:
                self._make(folder.parent)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_folder(folder.parent)
