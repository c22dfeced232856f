"""This release opens what each older one made, and answers what that answered; so do copies, backups and moved data."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from apiserver.formats import older
from apiserver.settings import Settings
from tests.golden import calls
from tests.golden.make import kept, names, unpack
from tests.harness import Served, run, served
from tests.longer import beyond

NAMES = names()
#: Of the oldest release and the newest: `make check` makes backups and copies of these folders, and opens all.
SOME = ["0.1.0-eafa113", "0.1.0-0e060d1"]

#: These fields hold the time of the start if a task's last values had to be made again after a kill.
_RESTATED = {"last_update", "last_change"}
#: The points of a bucket may be added up in another order, by another engine.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Golden:
    """A golden folder, unpacked."""

    name: str
    folder: Path
    answers: Mapping[str, Any]

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def backup(self) -> Path:
        return self.folder / "backup"


@pytest.fixture(params=NAMES)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Golden:
    """A copy of each golden folder."""
    return Golden(request.param, tmp_path, unpack(request.param, tmp_path))


OF_SOME = pytest.mark.parametrize("golden", beyond(SOME, NAMES), indirect=True)


def of_those_that_kept(within: str, word: bytes = b"") -> pytest.MarkDecorator:
    """For a test of the golden folders with files in a folder or at a path, each with the word."""
    return pytest.mark.parametrize("golden", [name for name in NAMES if kept(name, within, word)], indirect=True)


def assert_answers(server: Served, recorded: Mapping[str, Any]) -> None:
    """The server answers what was recorded. It may tell more."""
    for call in recorded["calls"]:
        rounding = _ROUNDING if "histogram" in call["endpoint"] else 0.0
        wrong = differences(call["answer"], calls.answer(server, call), rounding)
        assert not wrong, f"{call['endpoint']} {call['request']}: {wrong[:5]}"
    for name, digest in recorded["files"].items():
        assert calls.content(server, name) == digest


def differences(expected: Any, found: Any, rounding: float, path: str = "") -> list[str]:
    """Where what was found is not what was expected; fields that were not expected are no difference."""
    if isinstance(expected, dict) and isinstance(found, dict):
        missing = [f"{path}.{name} is missing" for name in expected.keys() - found.keys()]
        both = (expected.keys() & found.keys()) - _RESTATED
        return missing + [
            line for name in both for line in differences(expected[name], found[name], rounding, f"{path}.{name}")
        ]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = enumerate(zip(expected, found, strict=True))
        return [line for n, (one, other) in pairs for line in differences(one, other, rounding, f"{path}[{n}]")]
    if isinstance(expected, float) and isinstance(found, float) and math.isclose(expected, found, rel_tol=rounding):
        return []
    return [] if expected == found else [f"{path}: {str(found)[:200]} instead of {str(expected)[:200]}"]


def test_there_are_folders_of_several_releases() -> None:
    assert len(NAMES) > 4


def test_it_opens_and_answers_the_same(golden: Golden) -> None:
    """And the doctor finds nothing: before, unless it has to be opened first, while the server runs, and afterwards."""
    if older(Settings(data=golden.data)):
        with pytest.raises(AssertionError, match="brings it up to date when it starts: then look again"):
            run("doctor", "--data", golden.data)
    else:
        run("doctor", "--data", golden.data)
    with served(golden.data) as server:
        assert_answers(server, golden.answers["folder"])
        run("doctor", "--data", golden.data)
        server.stop()
        run("doctor", "--data", golden.data)
        server.start()  # all is merged now
        assert_answers(server, golden.answers["folder"])


@OF_SOME
def test_a_dry_run_says_what_a_start_would_do_and_does_nothing(golden: Golden) -> None:
    before = {path: path.read_bytes() for path in golden.folder.rglob("*") if path.is_file()}
    command = [sys.executable, "-m", "apiserver", "migrate", "--dry-run", "--data", str(golden.data)]
    done = subprocess.run(command, capture_output=True, text=True)
    old = older(Settings(data=golden.data))
    assert done.returncode == (1 if old else 0), done.stderr
    for problem in old:
        assert f"data: {problem}: a server brings it up to date when it starts" in done.stdout
    assert {path: path.read_bytes() for path in golden.folder.rglob("*") if path.is_file()} == before


@OF_SOME
def test_a_backup_of_it_is_restored(golden: Golden, tmp_path: Path) -> None:
    run("backup", tmp_path / "made", "--data", golden.data, "--fast")
    run("restore", tmp_path / "made", "--data", tmp_path / "new", "--verify")
    with served(tmp_path / "new") as server:
        assert_answers(server, golden.answers["folder"])


@pytest.mark.parametrize("golden", beyond(SOME[1:], [name for name in NAMES if kept(name, "backup")]), indirect=True)
def test_its_own_backup_is_restored(golden: Golden, tmp_path: Path) -> None:
    run("backup", golden.backup, "--check")
    run("restore", golden.backup, "--data", tmp_path / "new", "--verify")
    with served(tmp_path / "new") as server:
        assert_answers(server, golden.answers["backup"])


@OF_SOME
def test_a_copy_answers_the_same(golden: Golden, tmp_path: Path) -> None:
    run("copy", "--from", golden.data, "--to", tmp_path / "new")
    (golden.data / "files").rename(tmp_path / "new" / "files")  # copies have events and documents
    with served(tmp_path / "new") as server:
        assert_answers(server, golden.answers["folder"])
