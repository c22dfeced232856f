"""The data folder: where each store keeps its part, and the secrets made at first start. Only its owner may read it."""

from __future__ import annotations

import contextlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path


class DataFolderError(Exception):
    """The data folder cannot be made or used; the message says why."""


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The places inside one data folder."""

    root: Path

    @property
    def documents(self) -> Path:
        return self.root / "documents.db"

    @property
    def events(self) -> Path:
        return self.root / "events"

    @property
    def files(self) -> Path:
        return self.root / "files"

    @property
    def reserve(self) -> Path:
        return self.root / "reserve"

    @property
    def client_configuration(self) -> Path:
        return self.root / "clearml.conf"

    def make(self) -> None:
        """Make the folder, readable by its owner only, unless it is there."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not os.access(self.root, os.R_OK | os.W_OK | os.X_OK):
                raise PermissionError(f"no permission to write to '{self.root}'")
        except OSError as error:
            raise DataFolderError(f"cannot use the data folder: {error}") from error

    def token_secret(self) -> str:
        """The secret that signs tokens; made when there is none."""
        path = self.root / "token_secret"
        try:
            if not path.exists():
                write_private(path, secrets.token_urlsafe(48), replace=False)
            secret = path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise DataFolderError(f"cannot keep the token secret: {error}") from error
        if len(secret) < 32:
            raise DataFolderError(f"'{path}' holds no usable secret; delete it to have a new one made")
        return secret


def write_private(path: Path, text: str, *, replace: bool = True) -> None:
    """Write a file that only its owner can read, whole or not at all; OSError when that is not possible.

    Without `replace`, a file that is there stays: of servers that share the folder and start at once, one writes it.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            temporary.replace(path)
        else:
            with contextlib.suppress(FileExistsError):
                os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
