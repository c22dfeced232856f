"""A JVM starts with an archive of its classes. One that is cut off, or that no JVM wrote, does not stop it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engines import archives, jvm
from tests.engines.fixtures import available

pytestmark = pytest.mark.check

#: A small program among the jars of an engine.
_PROGRAM = ["org.h2.tools.Recover", "-help"]

Run = Callable[[str], int]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a JVM with an option, and returns how many classes it took from an archive that is not the JDK's."""
    with available("JVM", None):
        home = jvm.home("mongodb")

    def of(option: str) -> int:
        command = [*jvm.java(home, "64m", option, "-Xlog:class+load", quick=True), *_PROGRAM]
        # It writes down there why it crashed.
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=600)
        return done.stdout.count("source: shared objects file (top)")

    return of


@pytest.fixture
def used() -> list[str]:
    return []


@pytest.fixture
def use(run: Run, used: list[str]) -> Callable[[str], bool]:
    """Notes each time that an archive is made."""

    def noted(option: str) -> bool:
        used.append(option)
        run(option)
        return True

    return noted


def test_an_archive_is_made_once(tmp_path: Path, run: Run, use: Callable[[str], bool], used: list[str]) -> None:
    option = archives.option(tmp_path, use)
    assert run(option) > 10
    assert archives.option(tmp_path, use) == option
    assert len(used) == 1


def test_an_archive_that_is_cut_off_is_made_again(
    tmp_path: Path, run: Run, use: Callable[[str], bool], used: list[str]
) -> None:
    """A JVM that reads it crashes."""
    path = Path(archives.option(tmp_path, use).partition("=")[2])
    size = path.stat().st_size
    path.chmod(0o600)
    os.truncate(path, size // 2)
    with pytest.raises(subprocess.CalledProcessError):
        run(f"-XX:SharedArchiveFile={path}")
    again = archives.option(tmp_path, use)
    assert run(again) > 10
    assert len(used) == 2
    assert len(list(tmp_path.glob("*.jsa"))) == 1


def test_an_archive_that_no_jvm_wrote_stops_none(
    tmp_path: Path, run: Run, use: Callable[[str], bool], used: list[str]
) -> None:
    path = Path(archives.option(tmp_path, use).partition("=")[2])
    path.chmod(0o600)
    path.write_bytes(bytes(path.stat().st_size))
    option = archives.option(tmp_path, use)
    assert option.endswith(str(path))
    assert run(option) == 0
    assert len(used) == 1


def test_a_jvm_that_makes_no_archive_starts_without(tmp_path: Path, run: Run) -> None:
    option = archives.option(tmp_path, lambda option: False)
    assert run(option) == 0
    assert archives.option(tmp_path, lambda option: pytest.fail("not again")) == option
