"""Locks of files and folders among processes. A lock ends with the process that holds it, however the process ends."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def lock_if_free(path: Path) -> Iterator[bool]:
    """Lock a folder, or a file, which is made if it is missing, inside the block: whether nobody else holds the lock.

    This does not wait. OSError: the file cannot be opened, or its file system has no locks.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY if path.is_dir() else os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)
