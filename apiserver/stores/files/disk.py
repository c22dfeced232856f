"""Files of all companies on disk, in one folder for each company. A file is there completely or not at all.

An upload is written to `incoming/`, and moved to its place when it is complete; there it replaces an older file in one
step. Symbolic links are never followed. Several stores may share the folder: each holds a shared lock on the file
`lock` while it is open.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import threading
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self
from uuid import uuid4

from anyio import to_thread

from apiserver.stores.files.names import InvalidName, disk_folder, disk_path
from apiserver.stores.files.shares import Shares
from apiserver.stores.locks import lock_if_free
from apiserver.stores.syncing import sync_folder

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class FileStoreError(Exception):
    """The store cannot be used, or could not do what was asked. Existing files are unchanged."""


class FileTooLarge(FileStoreError):
    """An upload is larger than allowed."""


class FileStoreFull(FileStoreError):
    """The disk is full."""


class Former(NamedTuple):
    """A file that was replaced or deleted."""

    bytes: int
    placed_ns: int
    """When it had been put in its place, in epoch nanoseconds."""


class FileStore:
    """Files by company and name. `max_bytes` limits a file, 0 does not; with `fsync`, files survive a power loss."""

    def __init__(self, folder: Path, *, max_bytes: int = 0, fsync: bool = False) -> None:
        self._folder = folder
        self._incoming = folder / "incoming"
        self._max_bytes = max_bytes
        self._fsync = fsync
        self._lock = -1
        self._replacing = threading.Lock()
        self._shares = Shares()

    async def open(self) -> None:
        """Make the folder. If no other store has it open, remove the uploads that a crash interrupted."""
        try:
            await to_thread.run_sync(self._open)
        except OSError as error:
            raise FileStoreError(f"cannot use the folder of files: {error}") from error

    def _open(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = self._folder.resolve()
        self._incoming = self._folder / "incoming"
        self._incoming.mkdir(mode=0o700, exist_ok=True)
        lock = self._folder / "lock"
        self._lock = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with contextlib.suppress(OSError), lock_if_free(lock) as alone:  # the file system may have no locks
            for left in self._incoming.iterdir() if alone else ():
                left.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            fcntl.flock(self._lock, fcntl.LOCK_SH)

    async def close(self) -> None:
        """Release the lock; a second call does nothing."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    async def check(self) -> None:
        """Raise FileStoreError unless files can be written."""
        if not await to_thread.run_sync(os.access, self._incoming, os.W_OK | os.X_OK):
            raise FileStoreError(f"'{self._incoming}' cannot be written to")

    def upload(self, company: str, name: str) -> Upload:
        """A new upload, for use in `async with`. Raises InvalidName."""
        return Upload(self, self._place(company, name))

    async def find(self, company: str, name: str) -> StoredFile | None:
        """The file, opened, or None if there is none. The caller closes it."""
        try:
            file = await to_thread.run_sync(_open_file, self._place(company, name), self._shares)
        except InvalidName:
            return None
        if file is not None:
            self._shares.enter(file)
        return file

    async def delete(self, company: str, name: str, *, placed_before: int | None = None) -> Former | None:
        """Delete the file, or only one that was stored before a time (epoch ns); None if there is none."""
        try:
            return await to_thread.run_sync(self._delete, self._place(company, name), placed_before)
        except InvalidName:
            return None

    def _place(self, company: str, name: str) -> Path:
        return self._folder / disk_folder(company) / disk_path(name)

    def _delete(self, place: Path, placed_before: int | None) -> Former | None:
        if not _is_real_folder(place.parent) or place.is_symlink():
            return None
        try:
            with self._replacing:
                former = _former(place)
                if former is None or (placed_before is not None and former.placed_ns > placed_before):
                    return None
                place.unlink()
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENAMETOOLONG):
                return None
            raise _explained(error) from error
        self._remove_empty_folders(place.parent)
        return former

    def _remove_empty_folders(self, folder: Path) -> None:
        while folder != self._folder:
            try:
                folder.rmdir()
            except OSError:
                return
            folder = folder.parent


class Upload:
    """A file that is being uploaded. Nobody sees it before `commit`; without `commit`, it is removed."""

    def __init__(self, store: FileStore, place: Path) -> None:
        self._store = store
        self._shares = store._shares
        self._temporary = store._incoming / uuid4().hex
        self._place = place
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._file = -1
        self._placed = False
        self.size = 0

    async def __aenter__(self) -> Self:
        await to_thread.run_sync(self._open)
        self._shares.enter(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._shares.leave(self)
        with contextlib.suppress(OSError):  # it is open still only if the upload failed, which is told
            self._close()
        if not self._placed:
            with contextlib.suppress(OSError):  # `FileStore.open` tries again
                await to_thread.run_sync(partial(self._temporary.unlink, missing_ok=True))  # slow for a large file

    async def write(self, data: bytes) -> None:
        """Append to the file. Raises FileTooLarge and FileStoreFull."""
        self.size += len(data)
        if self._store._max_bytes and self.size > self._store._max_bytes:
            raise FileTooLarge(f"the file is larger than {self._store._max_bytes} bytes")
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        if self._waiting_bytes >= self._shares.size:
            await to_thread.run_sync(self._flush)

    async def finish(self) -> None:
        """Write what is waiting, and close the file: everything was given to `write`."""
        await to_thread.run_sync(self._finish)
        self._shares.leave(self)

    async def commit(self) -> Former | None:
        """Move the finished file to its place, where it replaces a file of the same name: this is returned."""
        former = await to_thread.run_sync(self._commit)
        self._placed = True
        return former

    def _open(self) -> None:
        try:
            self._file = os.open(self._temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _explained(error) from error

    def _flush(self) -> None:
        waiting = memoryview(b"".join(self._waiting))
        self._waiting.clear()
        self._waiting_bytes = 0
        try:
            while waiting:
                waiting = waiting[os.write(self._file, waiting) :]
        except OSError as error:
            raise _explained(error) from error

    def _finish(self) -> None:
        self._flush()
        try:
            if self._store._fsync:
                os.fsync(self._file)
            self._close()
        except OSError as error:
            raise _explained(error) from error

    def _commit(self) -> Former | None:
        try:
            former = self._move()
            # Sync the file's folder, and those above it, which may be new.
            folder = self._place.parent
            while self._store._fsync and folder.is_relative_to(self._store._folder):
                sync_folder(folder)
                folder = folder.parent
        except OSError as error:
            raise _explained(error) from error
        return former

    def _move(self) -> Former | None:
        folder = self._place.parent
        if not _is_real_folder(folder):
            raise FileStoreError("a symbolic link is in the way")
        for attempt in range(3):
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                with self._store._replacing:
                    former = _former(self._place)
                    os.replace(self._temporary, self._place)
                    return former
            except FileNotFoundError:  # a deletion has just removed the empty folder
                if attempt == 2:
                    raise
        return None

    def _close(self) -> None:
        file, self._file = self._file, -1  # closed also if closing fails, and the number may be another file's then
        if file >= 0:
            os.close(file)


@dataclass(slots=True, eq=False)
class StoredFile:
    """An open file. Its content stays the same even if the file is replaced or deleted meanwhile."""

    descriptor: int
    size: int
    modified_ns: int
    inode: int
    """Distinguishes files that replaced each other within one tick of the file system's clock."""
    shares: Shares

    async def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes from `offset`, but no more than this download may hold in memory now (`Shares`)."""
        return await to_thread.run_sync(os.pread, self.descriptor, min(size, self.shares.size), offset)

    def close(self) -> None:
        """Close the file; a second call does nothing."""
        self.shares.leave(self)
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1


def _former(place: Path) -> Former | None:
    try:
        status = place.lstat()
    except FileNotFoundError:
        return None
    return Former(status.st_size, status.st_ctime_ns)


def _open_file(place: Path, shares: Shares) -> StoredFile | None:
    if not _is_real_folder(place.parent):
        return None
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP, errno.ENAMETOOLONG):
            return None
        raise _explained(error) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        return None
    return StoredFile(descriptor, status.st_size, status.st_mtime_ns, status.st_ino, shares)


def _is_real_folder(folder: Path) -> bool:
    """Whether no part of the path of `folder` is a symbolic link."""
    return os.path.realpath(folder) == str(folder)


def _explained(error: OSError) -> Exception:
    if error.errno in _FULL:
        return FileStoreFull("there is no room on the disk")
    if error.errno == errno.ENAMETOOLONG:
        return InvalidName("the name is too long")
    return FileStoreError(f"the disk refuses: {error.strerror}")
