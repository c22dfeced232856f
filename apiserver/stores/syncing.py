"""Makes changes of files and folders durable."""

from __future__ import annotations

import os
from pathlib import Path


def write_synced(path: Path, content: bytes) -> None:
    """Write a file for its owner alone. It survives a power loss when its folder is synced, too."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def sync_file(path: Path) -> None:
    """Make what was written to a file survive a power loss; OSError if some of it could not be written."""
    _sync(path, os.O_NOFOLLOW)


def sync_folder(folder: Path) -> None:
    """Make the creation and deletion of files in `folder` survive a power loss."""
    _sync(folder, os.O_DIRECTORY)


def _sync(path: Path, flag: int) -> None:
    descriptor = os.open(path, os.O_RDONLY | flag | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
