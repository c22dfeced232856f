"""The data folder: the paths of the stores in it, and the secrets of the first start. Only its owner may read it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path


class DataFolderError(Exception):
    """The data folder cannot be created or used; the message says why."""


@dataclass(frozen=True, slots=True)
class DataFolder:
    """The paths in one data folder."""

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
    def exports(self) -> Path:
        return self.root / "exports"

    @property
    def audit(self) -> Path:
        return self.root / "audit"

    @property
    def metrics(self) -> Path:
        return self.root / "metrics"

    @property
    def reserve(self) -> Path:
        return self.root / "reserve"

    @property
    def restoring(self) -> Path:
        """Is there while a backup is restored into the folder, and afterwards if that was interrupted."""
        return self.root / "restoring"

    @property
    def client_configuration(self) -> Path:
        return self.root / "clearml.conf"

    def backup_check(self, destination: str) -> Path:
        """Says how far checks of the backups at a destination are, and what they found."""
        return self.root / "backup_checks" / f"{hashlib.sha256(os.fsencode(destination)).hexdigest()[:32]}.json"

    @property
    def address(self) -> Path:
        """Has the address, for programs on this machine, of the server that started last on the folder."""
        return self.root / "address"

    def noted_address(self) -> str:
        """The address that the server itself has noted; "" if it has not.

        The ports of a server may come from its own environment, which commands do not have.
        """
        try:
            return self.address.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError):
            return ""

    def require(self) -> None:
        """Raise DataFolderError if there is no such folder, as its name may have a typo; or if it is not whole."""
        if not self.root.exists():
            raise DataFolderError(f"there is no data folder '{self.root}'; the first start of a server makes it")
        if not self.root.is_dir():
            raise DataFolderError(f"cannot use the data folder: '{self.root}': it is no folder")
        self.require_whole()

    def make(self) -> None:
        """Create the folder, readable only by its owner, if it does not exist."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            why = "it is no folder" if isinstance(error, FileExistsError) else error.strerror
            raise DataFolderError(f"cannot use the data folder: '{self.root}': {why}") from error
        if not os.access(self.root, os.R_OK | os.W_OK | os.X_OK):
            raise DataFolderError(f"cannot use the data folder: no permission to write to '{self.root}'")
        self.require_whole()

    def require_whole(self) -> None:
        """Raise DataFolderError if a backup is being restored into the folder, or was not restored to the end."""
        if self.restoring.exists():
            why = "was not restored to the end; delete it, and restore it again"
            raise DataFolderError(f"cannot use the data folder: '{self.root}' {why}")

    def token_secret(self) -> str:
        """The secret that signs tokens; created if there is none."""
        path = self.root / "token_secret"
        try:
            if not path.exists():
                write_private(path, secrets.token_urlsafe(48), replace=False)
            secret = path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise DataFolderError(f"cannot store the token secret: {error}") from error
        if len(secret) < 32:
            raise DataFolderError(f"'{path}' holds no usable secret; delete it, and the next start makes a new one")
        return secret


def forget_processes(folder: Path, own: Path) -> None:
    """Delete the folders of processes that have ended, which are named by their numbers. The caller's `own` stays."""
    with contextlib.suppress(OSError):
        for found in folder.iterdir():
            if found != own and not (found.name.isdecimal() and _is_alive(int(found.name))):
                shutil.rmtree(found, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def write_private(path: Path, text: str, *, replace: bool = True) -> None:
    """Write a file that only its owner can read, completely or not at all. Raises OSError.

    Without `replace`, an existing file stays: if several servers start at once on one folder, the first one writes it.
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
