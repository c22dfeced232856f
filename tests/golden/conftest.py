"""The golden folders: those of releases, and one that this code makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.golden.make import copied, names, record, unpack

_NOW = "now"


@dataclass(frozen=True)
class Golden:
    """A copy of a golden folder."""

    folder: Path
    answers: Mapping[str, Any]

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def backup(self) -> Path:
        return self.folder / "backup"


@pytest.fixture(scope="session")
def made_now(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A golden folder that this code makes."""
    record(folder := tmp_path_factory.mktemp("made") / "golden")
    return folder


@pytest.fixture(params=[*names(), _NOW])
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Golden:
    """A copy of each golden folder."""
    folder = tmp_path / "golden"
    if request.param != _NOW:
        return Golden(folder, unpack(request.param, folder))
    made: Path = request.getfixturevalue("made_now")
    return Golden(folder, copied(made, folder))
