from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.order import Shuffled


def collected() -> list[Any]:
    return [
        SimpleNamespace(path=Path(f"test_{module}.py"), number=number) for module in range(9) for number in range(9)
    ]


def shuffled(seed: str) -> list[tuple[Path, int]]:
    items = collected()
    Shuffled(seed).pytest_collection_modifyitems(items)
    return [(item.path, item.number) for item in items]


def test_a_seed_is_an_order() -> None:
    assert shuffled("7") == shuffled("7") != shuffled("8")
    assert sorted(shuffled("7")) == sorted((item.path, item.number) for item in collected())


def test_the_tests_of_a_module_stay_together_in_another_order() -> None:
    modules = [path for path, _ in shuffled("7")]
    changes = [before for before, after in pairwise(modules) if before != after]
    assert len(changes) == 8
    assert [number for _, number in shuffled("7")[:9]] != list(range(9))
