"""Where backups are kept: contents by name. A name is `manifests/…` or `pieces/3f/3f…`.

What has another name was not written by a backup. It is not used, and never deleted.
"""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path

from apiserver.extras import installed_by

#: The names of a manifest (its moment, and a SHA-256) and of a piece (its SHA-256).
MANIFEST = re.compile(r"manifests/(\d{8}T\d{6}\.\d{3}Z)-([0-9a-f]{64})\.json")
PIECE = re.compile(r"pieces/([0-9a-f]{2})/(\1[0-9a-f]{62})")
#: The bucket and the prefix in the address of a bucket.
BUCKET = re.compile(r"s3://([^/]+)/*(.*?)/*")
#: What the line begins with in which the command `backup` says what anybody may know of a failure, with --tell.
TELLS = "for anybody: "
_ENDPOINT = re.compile(r"https?://[^\s/]\S*")


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


def storage(said: str, key: str = "") -> Storage:
    """The destination that a folder or `s3://bucket/prefix` names, with the key of its manifests."""
    place = _place(said)
    place.key = key.encode()
    return place


def require_usable(said: str) -> None:
    """BackupError unless this names a folder, or a bucket and the package for buckets is installed. None is opened."""
    if said.startswith("s3://"):
        if not BUCKET.fullmatch(said):
            raise BackupError(f"{said} is not like s3://bucket/prefix")
        if find_spec("obstore") is None:
            raise BackupError(f"s3:// needs the extra s3: {installed_by('s3')}")
        if (endpoint := os.environ.get("AWS_ENDPOINT_URL")) and not _ENDPOINT.fullmatch(endpoint):
            raise BackupError(f"AWS_ENDPOINT_URL: {endpoint!r} is not like https://s3.example.org")
    elif re.match(r"\w+:/", said):  # with one slash, it would make a folder "s3:"
        raise BackupError(f"{said} is neither a folder nor s3://bucket/prefix")


def require_elsewhere(address: str, data: Path) -> None:
    """BackupError if this names a folder in the data folder: what damages one damages both."""
    if not address.startswith("s3://") and Path(address).resolve().is_relative_to(data.resolve()):
        raise BackupError(
            f"{address} lies in the data folder: a backup belongs elsewhere", "the destination lies in the data folder"
        )


def _place(said: str) -> Storage:
    require_usable(said)
    if bucket := BUCKET.fullmatch(said):
        from apiserver.operating.backup.s3 import S3

        return S3(said, *bucket.groups())
    from apiserver.operating.backup.folder import Folder

    return Folder(Path(said))
