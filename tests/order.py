"""Tests in random order: with EVENTS_ORDER in the environment, any text, which is the seed of the order.

Modules change places, and so do the tests of a module: tests of one module share servers, which start once so.
"""

from __future__ import annotations

import os
import random

import pytest

VARIABLE = "EVENTS_ORDER"


class Shuffled:
    """A plugin of pytest. All processes of a run have the same order, as they have the same environment."""

    def __init__(self, seed: str) -> None:
        self._seed = seed

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        dice = random.Random(self._seed)
        modules: dict[object, list[pytest.Item]] = {}
        for item in items:
            modules.setdefault(item.path, []).append(item)
        groups = list(modules.values())
        dice.shuffle(groups)
        for group in groups:
            dice.shuffle(group)
        items[:] = [item for group in groups for item in group]


def chosen() -> Shuffled | None:
    """The plugin, if the environment asks for an order."""
    seed = os.environ.get(VARIABLE)
    return Shuffled(seed) if seed else None
