"""A data folder with a little of everything, whose server was killed, and its backup."""

from __future__ import annotations

import io
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from apiserver.operating.backup.bounds import BackupBounds
from apiserver.operating.backup.folder import Folder
from apiserver.operating.backup.making import make
from apiserver.operating.backup.manifest import Named
from apiserver.operating.backup.progress import Progress
from apiserver.settings.settings import Settings
from tests.harness import served, wait_until
from tests.robustness.writers import Writer, new_task, writing


def backed_up(data: Path, destination: Path, **bounds: int) -> Named:
    """A backup of a folder that no server uses; `bounds`: fields of BackupBounds."""
    return make(Settings(data=data), Folder(destination), quiet(), bounds=BackupBounds(**bounds))


def quiet() -> Progress:
    """Progress that nobody reads."""
    return Progress(io.StringIO())


def damage(path: Path, table: str) -> None:
    """Overwrite the first pages of a table of an SQLite file, and of its indexes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ask = "SELECT rootpage FROM sqlite_schema WHERE tbl_name = ?"
        roots = connection.execute(ask, (table,)).fetchall()
        ((size,),) = connection.execute("PRAGMA page_size").fetchall()
    content = bytearray(path.read_bytes())
    for (root,) in roots:
        content[(root - 1) * size : root * size] = bytes(size)
    path.write_bytes(content)


@pytest.fixture(scope="session")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder. Tests copy it."""
    folder = tmp_path_factory.mktemp("stopped") / "data"
    with served(folder) as server:
        writer = Writer(server, new_task(server), "one")
        with writing([writer]):
            wait_until(lambda: writer.acknowledged >= 40)
        with server.client() as client:
            for name, content in (("small.txt", b"small"), ("large.bin", bytes(range(256)) * 10_000)):
                assert client.put(f"{server.files_url}/project/{name}", content=content).status_code == 200
        server.kill()  # so the journal stays as it is
    return folder


@pytest.fixture
def data(stopped: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stopped, tmp_path / "data"))


@pytest.fixture
def destination(data: Path, tmp_path: Path) -> Path:
    """A folder with a backup of `data`."""
    backed_up(data, tmp_path / "backups")
    return tmp_path / "backups"
