"""A folder of backups. Only its owner can read it, as backups have all secrets of the server.

The folder itself may be a symbolic link. Links in it are not followed: they could lead to files of others, which would
be counted, overwritten or deleted.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

from apiserver.operating.backup.storage import MANIFEST, PIECE, BackupError, Missing, Storage
from apiserver.stores.locks import lock_if_free
from apiserver.stores.syncing import sync_folder

_TEMPORARY = ".unfinished"
#: Bytes of a stream that are read at a time.
_PIECE = 2**18


class Folder(Storage):
    """The folder `root`, which is made when something is written to it."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.address = str(self.root)

    def sizes(self, folder: str) -> dict[str, int]:
        return {name: size for name, size in sorted(self._listed(folder)) if not _is_unfinished(name)}

    def _listed(self, folder: str) -> Iterator[tuple[str, int]]:
        """All files and links in a folder, each by its name, with its size."""
        waiting = [folder]
        while waiting:
            folder = waiting.pop()
            try:
                self._refuse_link(self.root / folder)
                for entry in os.scandir(self.root / folder):
                    name = f"{folder}/{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(name)
                    else:
                        yield name, entry.stat(follow_symlinks=False).st_size
            except FileNotFoundError:
                continue
            except OSError as error:
                raise _failed(str(self.root / folder), "listed", error) from error

    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        with self._opened(name) as (file, whole):
            file.seek(start)
            # Python would take as much memory as is asked for, however small the file is.
            return file.read() if size is None else file.read(max(0, min(size, whole - start)))

    def stream(self, name: str) -> Iterator[bytes]:
        with self._opened(name) as (file, _):
            while piece := file.read(_PIECE):
                yield piece

    @contextmanager
    def _opened(self, name: str) -> Iterator[tuple[BinaryIO, int]]:
        """A file and its size. BackupError if it is none, or cannot be read inside the block."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            with open(self.root / name, "rb", opener=lambda path, _: os.open(path, flags)) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise BackupError(f"{name} is no file")
                yield file, status.st_size
        except FileNotFoundError as error:
            raise Missing(f"{name} cannot be read: {error.strerror}") from error
        except OSError as error:
            raise _failed(name, "read", error) from error

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
            raise _failed(str(path), "written", error) from error

    def delete(self, name: str) -> None:
        try:
            (self.root / name).unlink(missing_ok=True)
        except OSError as error:
            raise _failed(name, "deleted", error) from error

    @contextmanager
    def owned(self) -> Iterator[None]:
        with ExitStack() as held:
            try:
                self._make(self.root)
                is_ours = held.enter_context(lock_if_free(self.root / "lock"))
            except OSError as error:
                raise _failed(str(self.root), "used", error) from error
            if not is_ours:
                raise BackupError(
                    f"another backup to {self.root} is under way", "another backup to the destination is under way"
                )
            for name in [name for folder in ("manifests", "pieces") for name, _ in self._listed(folder)]:
                if _is_unfinished(name):  # of a backup that was killed
                    self.delete(name)
            yield

    def _make(self, folder: Path) -> None:
        """Make the folder and those above it, so that they survive a loss of power."""
        self._refuse_link(folder)
        if not folder.is_dir():
            if folder != self.root:
                self._make(folder.parent)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_folder(folder.parent)

    def _refuse_link(self, folder: Path) -> None:
        if folder != self.root and folder.is_symlink():
            raise BackupError(
                f"{folder} is a symbolic link, which backups do not follow: name its target instead",
                "a folder at the destination is a symbolic link",
            )


def _failed(name: str, what: str, error: OSError) -> BackupError:
    """What is said and told if something at the destination cannot be read, say."""
    return BackupError(
        f"{name} cannot be {what}: {error.strerror}", f"the destination cannot be {what}: {error.strerror}"
    )


def _is_unfinished(name: str) -> bool:
    """Whether it is a content that was being written."""
    whole = name.removesuffix(_TEMPORARY)
    return whole != name and bool(MANIFEST.fullmatch(whole) or PIECE.fullmatch(whole))
