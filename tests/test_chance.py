"""That the examples of `make check` are the same everywhere."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chance import examples, seed_of


def drawn() -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []

    @examples(100)
    @given(st.integers(), st.text())
    def collect(number: int, text: str) -> None:
        found.append((number, text))

    collect()
    return found


def test_examples_do_not_depend_on_what_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    if seed_of(pytestconfig) is not None:
        pytest.skip("this run looks at others")
    before = drawn()
    module = ModuleType("one_more")
    module.__file__ = str(tmp_path / "one_more.py")
    Path(module.__file__).write_text(f"CONSTANTS = {list(range(10**6, 10**6 + 500))}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    assert drawn() == before


def test_numbers_of_a_test_do_not_depend_on_the_run(dice: random.Random, pytestconfig: pytest.Config) -> None:
    assert (dice.random() == 0.4922263740055647) == (seed_of(pytestconfig) is None)
