"""Where backups are kept: contents by name. A name is `manifests/…` or `pieces/3f/3f…`.

What has another name was not written by a backup. It is not used, and never deleted.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

#: The names of a manifest (its moment, and a SHA-256) and of a piece (its SHA-256).
MANIFEST = re.compile(r"manifests/(\d{8}T\d{6}\.\d{3}Z)-([0-9a-f]{64})\.json")
PIECE = re.compile(r"pieces/([0-9a-f]{2})/(\1[0-9a-f]{62})")
#: The beginning of the line in which `backup --tell` says what anybody may know of a failure.
TELLS = "for anybody: "


class BackupError(Exception):
    """A backup cannot be made, read or restored; the message says why."""

    def __init__(self, message: str, told: str = "") -> None:
        """`told`: why in words that anybody may read, without paths, addresses and names; empty: nothing is told."""
        super().__init__(message)
        self.told = told


class Missing(BackupError):
    """There is no content of this name."""


class Storage(ABC):
    """A destination of backups. Each method may raise BackupError."""

    key: bytes = b""
    """The key that manifests are signed with; empty: they are not signed, and no signature is checked."""

    address: str
    """The folder, or `s3://bucket/prefix`, for people."""

    @abstractmethod
    def sizes(self, folder: str) -> dict[str, int]:
        """The names that begin with `folder/`, sorted, with the sizes of their contents. They may be of any form."""

    @abstractmethod
    def read(self, name: str, start: int = 0, size: int | None = None) -> bytes:
        """A content, or some bytes of it from `start`. If there is none, that is Missing."""

    @abstractmethod
    def stream(self, name: str) -> Iterator[bytes]:
        """A content as `read` has it, in pieces of some megabytes at most, so that it need not fit into memory."""

    @abstractmethod
    def write(self, name: str, content: bytes) -> None:
        """Keep a content. It is there completely or not at all, and survives a loss of power, once this returns."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete a content; a missing one is none."""

    @abstractmethod
    def owned(self) -> AbstractContextManager[None]:
        """Keeps other backups away from the destination inside the block, where that can be done."""


def require_elsewhere(address: str, data: Path) -> None:
    """BackupError if this names a folder in the data folder: what damages one damages both."""
    if not address.startswith("s3://") and Path(address).resolve().is_relative_to(data.resolve()):
        raise BackupError(
            f"{address} lies in the data folder: a backup belongs elsewhere", "the destination lies in the data folder"
        )
