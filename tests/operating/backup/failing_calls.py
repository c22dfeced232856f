"""Backups of a folder, and one that is restored, while calls to the disk of both fail (`injecting.py`).

The environment says which data folder is backed up (`BACKED_UP`).
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from apiserver.operating.backup import manifest
from apiserver.operating.backup.checking import check
from apiserver.operating.backup.folder import Folder
from apiserver.operating.backup.restoring import restore
from apiserver.operating.backup.storage import BackupError
from apiserver.stores.data_folder import DataFolder, DataFolderError
from tests.operating.backup.conftest import backed_up, quiet
from tests.robustness.injecting import main

DATA = "BACKED_UP"


@dataclass
class Attempt:
    """Backups in one folder, and a folder that is restored beside them."""

    folder: Path
    acknowledged: int = 0

    async def fill(self) -> None:
        self._is_made()
        if self._is_made():
            self._is_restored("new")

    def _is_made(self) -> bool:
        try:
            backed_up(Path(os.environ[DATA]), self.folder / "backups", piece_bytes=2**17)  # several
        except BackupError:
            return False
        self.acknowledged += 1
        return True

    def _is_restored(self, name: str) -> bool:
        try:
            restore(self._backups, manifest.choose(self._backups, None).manifest, self.folder / name, quiet())
        except BackupError:
            return False
        self.acknowledged += 1
        return True

    @property
    def _backups(self) -> Folder:
        return Folder(self.folder / "backups")

    async def check(self) -> None:
        if self.acknowledged:
            assert check(self._backups, quiet()) == []
        new = self.folder / "new"
        if self.acknowledged == 3:
            self._assert_whole(new)
        elif new.exists() and any(new.iterdir()):
            try:
                DataFolder(new).make()
            except DataFolderError:
                pass  # no server starts on what may not be whole
            else:
                self._assert_whole(new)
        assert self._is_made()
        assert check(self._backups, quiet()) == []
        assert self._is_restored("another")
        self._assert_whole(self.folder / "another")

    def _assert_whole(self, root: Path) -> None:
        data = Path(os.environ[DATA])
        for path in data.rglob("files/**/*.*"):
            assert (root / path.relative_to(data)).read_bytes() == path.read_bytes()
        assert (root / "token_secret").read_bytes() == (data / "token_secret").read_bytes()
        assert (root / "documents.db").stat().st_size > 0


if __name__ == "__main__":
    main(Attempt, sys.argv[1:])
