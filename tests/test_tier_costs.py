from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.tier_costs import CONTRIBUTING, cost, row, written


def test_contributing_has_a_place_for_the_table() -> None:
    text = written(CONTRIBUTING.read_text(), [row("`make quick`", 54.6, 101)])
    assert "|---|---:|---:|\n| `make quick` | 0:55 | 1:41 |\n\n<!-- end -->" in text
    assert text.count("| `make quick` | 0:55") == 1
    assert written(text, []) == written(CONTRIBUTING.read_text(), [])


@pytest.mark.test
def test_a_command_that_fails_ends_it(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="exit status 3"):
        cost([sys.executable, "-c", "exit(3)"], tmp_path)
