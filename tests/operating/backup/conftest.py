"""A data folder with a little of everything, whose server was killed, and its backup."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest

from apiserver.operating.backup.folder import Folder
from apiserver.operating.backup.making import make
from apiserver.operating.backup.manifest import Named
from apiserver.operating.backup.progress import Progress
from apiserver.settings import Settings
from tests.harness import served, wait_until
from tests.robustness.writers import Writer, new_task, writing


def backed_up(data: Path, destination: Path) -> Named:
    """A backup of a folder that no server uses."""
    return make(Settings(data=data), Folder(destination), quiet())


def quiet() -> Progress:
    """Progress that nobody reads."""
    return Progress(io.StringIO())


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
