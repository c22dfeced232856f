from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import costs


def test_costs_are_added_up_by_folder_fixture_and_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        ("test", "tests/rpc/test_body.py::test_a[1]", 1.0, 0.5),
        ("test", "tests/rpc/test_body.py::test_a[2]", 1.0, 0.25),
        ("test", "tests/stores/events/embedded/test_merge.py::test_b", 3.0, 2.0),
        ("fixture", "api", 0.5, 0.25),
    ]
    (tmp_path / "1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    costs.main(str(tmp_path))
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["tests/stores/events", "1", "3.0", "2.0"] in rows
    assert ["tests/rpc/test_body.py::test_a", "2", "2.0", "0.8"] in rows
    assert ["api", "1", "0.5", "0.2"] in rows


def test_what_a_process_has_spent_grows() -> None:
    before = costs.spent()
    while costs.spent() == before:
        sum(range(1000))
    assert costs.spent() > before
