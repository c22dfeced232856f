"""Where backups are kept: contents by name. A name is `manifests/…` or `pieces/3f/3f…`."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from pathlib import Path


class BackupError(Exception):
    """A backup cannot be made, read or restored; the message says why."""


class Storage(ABC):
    """A destination of backups. Each method may raise BackupError."""

    @abstractmethod
    def sizes(self, folder: str) -> dict[str, int]:
        """The names that begin with `folder/`, sorted, with the sizes of their contents."""

    @abstractmethod
    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """A content, or some bytes of it from `start`. A missing one is a BackupError."""

    @abstractmethod
    def write(self, name: str, content: bytes) -> None:
        """Keep a content. It is there completely or not at all, and survives a loss of power, once this returns."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a content; a missing one is none."""

    @abstractmethod
    def owned(self) -> AbstractContextManager[None]:
        """Keeps other backups away from the destination inside the block, where that can be done."""


def storage(said: str) -> Storage:
    """The destination that a folder or `s3://bucket/prefix` names."""
    if said.startswith("s3://"):
        from apiserver.operating.backup.s3 import S3

        return S3(said)
    if re.match(r"\w+://", said):
        raise BackupError(f"{said} is neither a folder nor s3://bucket/prefix")
    from apiserver.operating.backup.folder import Folder

    return Folder(Path(said))
