"""That the examples of `make check` are the same everywhere."""

from __future__ import annotations

import pkgutil
import random
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import apiserver
from tests.chance import examples, import_all_that_examples_depend_on, seed_of


def test_modules_whose_constants_are_drawn_are_imported_before_the_first_property_test() -> None:
    property_test: Any = SimpleNamespace(get_closest_marker=lambda name: name == "hypothesis")
    import_all_that_examples_depend_on([property_test])
    modules = {module.name for module in pkgutil.walk_packages(apiserver.__path__, "apiserver.")}
    assert {name for name in modules - sys.modules.keys() if not name.endswith("__main__")} == set()


@pytest.mark.test
def test_the_same_examples_are_drawn_again() -> None:
    assert drawn() == drawn()


def drawn() -> list[tuple[int, str]]:
    seen: list[tuple[int, str]] = []

    @examples(100)
    @given(st.integers(), st.text())
    def collect(number: int, text: str) -> None:
        seen.append((number, text))

    collect()
    return seen


def test_numbers_of_a_test_do_not_depend_on_the_run(dice: random.Random, pytestconfig: pytest.Config) -> None:
    assert (dice.random() == 0.4922263740055647) == (seed_of(pytestconfig) is None)
