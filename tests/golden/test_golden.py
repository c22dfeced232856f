"""A server opens what each release made, and answers what that answered; so do copies, backups and moved data."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from apiserver.settings.settings import Settings
from apiserver.stores.formats import older
from tests.golden import calls
from tests.golden.conftest import Golden
from tests.harness import Served, run, served

#: These fields hold the time of the start if a task's last values had to be made again after a kill.
_RESTATED = {"last_update", "last_change"}
#: The points of a bucket may be added up in another order, by another engine.
_ROUNDING = 1e-9


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


def test_a_dry_run_says_what_a_start_would_do_and_does_nothing(golden: Golden) -> None:
    before = {path: path.read_bytes() for path in golden.folder.rglob("*") if path.is_file()}
    command = [sys.executable, "-m", "apiserver", "migrate", "--dry-run", "--data", str(golden.data)]
    done = subprocess.run(command, capture_output=True, text=True)
    old = older(Settings(data=golden.data))
    assert done.returncode == (1 if old else 0), done.stderr
    for problem in old:
        assert f"data: {problem}: a server brings it up to date when it starts" in done.stdout
    assert {path: path.read_bytes() for path in golden.folder.rglob("*") if path.is_file()} == before


def test_a_backup_of_it_is_restored(golden: Golden, tmp_path: Path) -> None:
    run("backup", tmp_path / "made", "--data", golden.data, "--fast")
    run("restore", tmp_path / "made", "--data", tmp_path / "new", "--verify")
    with served(tmp_path / "new") as server:
        assert_answers(server, golden.answers["folder"])


def test_a_copy_answers_the_same(golden: Golden, tmp_path: Path) -> None:
    run("copy", "--from", golden.data, "--to", tmp_path / "new")
    (golden.data / "files").rename(tmp_path / "new" / "files")  # copies have events and documents
    with served(tmp_path / "new") as server:
        assert_answers(server, golden.answers["folder"])
