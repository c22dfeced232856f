"""Releases before this one go on with the data folder that this one has used, or refuse it and touch nothing.

The releases before are commits of this repository. Where they are not there, as in a shallow clone, this is skipped.
`make check` takes the newest of each kind, and `make longer` the others.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from apiserver import formats
from tests.golden import calls
from tests.golden.make import answers_of
from tests.golden.test_golden import assert_answers
from tests.harness import PATIENCE, run, served
from tests.longer import beyond
from tests.releases import unpacked
from tests.test_formats import RAISED, content

NUMBERS = {format.name: format.number for format in formats.ALL}
#: Releases that keep all in the same formats.
SAME = {
    "9e06155": "the first that knows formats.json",
    "1e2f7d7": "signs backups, keeps an archive, an audit log and quotas",
}
#: Releases that keep less, with a lower number, and have no table of numbers yet.
LOWER = {
    "d9f78a9": "events 3",
    "ad49533": "events 2, no number of documents",
    "eafa113": "events 1, no number of documents",
}


@dataclass(frozen=True)
class Used:
    """A data folder that a server of this release has used, and what it answered."""

    data: Path
    answers: dict[str, Any]


@pytest.fixture(scope="module")
def used_once(tmp_path_factory: pytest.TempPathFactory) -> Used:
    folder = tmp_path_factory.mktemp("used")
    with served(folder / "data", scrub_days=1) as server:
        made = calls.first(server)
        calls.second(server, made)
        answers = answers_of(server, made)
        server.kill()  # the last batches are in the journal only
    return Used(folder / "data", answers)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of the first release that knows all numbers."""
    return unpacked(next(iter(SAME)), tmp_path_factory.mktemp("first") / "tree")


@pytest.fixture
def used(used_once: Used, tmp_path: Path) -> Used:
    """A copy of it."""
    return Used(Path(shutil.copytree(used_once.data, tmp_path / "data")), used_once.answers)


def refusal(tree: Path, data: Path) -> str:
    """What a release before says when it refuses to start on a folder."""
    serve = [sys.executable, "-m", "apiserver", "serve", "--data", str(data), "--port", "0"]
    done = subprocess.run(serve, cwd=tree, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode != 0, done.stdout
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("commit", beyond(["1e2f7d7"], SAME))
def test_a_release_before_goes_on_with_the_folder_of_this_one_and_back(used: Used, tmp_path: Path, commit: str) -> None:
    with served(used.data, tree=unpacked(commit, tmp_path / "tree")) as server:
        assert_answers(server, used.answers)
        server.call("projects.create", {"name": "made by the release before", "description": ""})
        server.stop()
        server.tree = None
        server.start()
        assert_answers(server, used.answers)
        assert server.call("projects.get_all", {"name": "made by the release before"})["projects"]
    run("doctor", "--data", used.data)
    run("audit", "--check", "--data", used.data)


@pytest.mark.parametrize("name", beyond(["events", "documents"], RAISED))
def test_a_release_before_refuses_each_higher_number_and_touches_nothing(used: Used, first: Path, name: str) -> None:
    """As it will refuse a folder of a release after this one."""
    raise_to, named = RAISED[name]
    raise_to(used.data, (number := NUMBERS[name]) + 1)
    before = content(used.data)
    assert f"'{used.data / named}' has format {number + 1} of {name}" in refusal(first, used.data)
    assert content(used.data) == before


@pytest.mark.parametrize("commit", beyond(["d9f78a9"], LOWER))
def test_a_release_from_before_the_numbers_refuses_the_folder_and_loses_nothing(
    used: Used, tmp_path: Path, commit: str
) -> None:
    """It may write the log of the database into the database, as SQLite does when a file is closed."""
    said = refusal(unpacked(commit, tmp_path / "tree"), used.data)
    assert f"{used.data / 'events' / 'events.db'} has schema {formats.EVENTS.number}, made by a newer version" in said
    run("doctor", "--data", used.data)
    with served(used.data) as server:
        assert_answers(server, used.answers)
