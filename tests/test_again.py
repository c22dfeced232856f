"""The record of `make check-again`; the runs themselves are all other tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import again, order

SUITE = """
import os
import pytest

def test_well():
    assert os.environ.get("EVENTS_ORDER") != "0"

@pytest.mark.skip
def test_left_out(): ...

def test_broken():
    assert "again-" not in os.environ.get("TMPDIR", "")
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for variable in ("TMPDIR", order.VARIABLE):  # those of the form in which this test runs
        monkeypatch.delenv(variable, raising=False)
    path = tmp_path / "test_suite.py"
    path.write_text(SUITE)
    return path


def test_a_form_tells_counts_and_failures(suite: Path) -> None:
    alone = again.run("alone", [["-q", str(suite)]])
    assert (alone.counts, alone.failed, alone.well) == ({"passed": 2, "skipped": 1}, [], True)
    elsewhere = again.run("another folder", [["-q", str(suite)], ["-q", f"{suite}::test_well"]])
    assert (elsewhere.counts, elsewhere.well) == ({"passed": 2, "skipped": 1, "failed": 1}, False)
    [failure] = elsewhere.failed
    assert failure.startswith("FAILED test_suite.py::test_broken")
    written = again.table([alone, elsewhere], "abc")
    assert "| as collected | 2 | 0 | 1 |" in written
    assert "- another folder: `FAILED test_suite.py::test_broken" in written


def test_an_order_is_told_to_the_tests_and_in_the_record(suite: Path) -> None:
    shuffled = again.run("random order", [["-q", str(suite)]])
    assert shuffled.seed
    assert order.VARIABLE == "EVENTS_ORDER"
    assert f"| {shuffled.seed} | 2 | 0 | 1 |" in again.table([shuffled], "abc")


def test_the_record_keeps_what_other_forms_came_to() -> None:
    result = again.Result("busy", "", counts={"passed": 7})
    before = again.table([again.Result("alone", ""), again.Result("busy", "")], "abc")
    rows = [
        line.split(" | ")[:2]
        for line in again.table([result], "def", before).splitlines()
        if line.startswith(("| alone", "| busy"))
    ]
    assert [(form, commit.partition(",")[0]) for form, commit in rows] == [("| alone", "abc"), ("| busy", "def")]


def test_a_run_that_cannot_begin_is_not_well(suite: Path) -> None:
    assert not again.run("alone", [["--no-such-option"]]).well
