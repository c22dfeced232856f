"""What tests leave to chance: nothing, unless they are told to look longer, or elsewhere.

`make check` looks at the same examples each time and everywhere, so that what passes once passes for all who have the
same versions. With EVENTS_EXAMPLES or EVENTS_KILLS in the environment, or `--hypothesis-seed=7`, tests look at others:
those of the seed, or of one that is drawn, and told when a test fails.

Hypothesis also draws constants of the modules that are imported by then, other than tests. So all of `apiserver` is
imported before the first property test. What still makes other examples is a change of a constant there, and another
selection of tests, if it imports more than `apiserver`, such as `benchmarks`.
"""

from __future__ import annotations

import os
import pkgutil
import random
from collections.abc import Iterable
from importlib import import_module
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

import apiserver

T = TypeVar("T")


def examples(usual: int) -> settings:
    """How many examples a property test looks at."""
    return settings(max_examples=int(os.environ.get("EVENTS_EXAMPLES", usual)))


def drawn(strategy: SearchStrategy[T], usual: int) -> list[T]:
    """So many examples at once: for what has to look at them together, as it starts other programs.

    Its module needs the mark `hypothesis`.
    """
    found: list[T] = []

    @examples(usual)
    @given(strategy)
    def draw(one: T) -> None:
        found.append(one)

    draw()
    return found


def choose(config: pytest.Config) -> None:
    """Choose what tests look at, before any is defined; the processes that run tests for this one get its options."""
    if seed_of(config) is None and ("EVENTS_EXAMPLES" in os.environ or "EVENTS_KILLS" in os.environ):
        config.option.hypothesis_seed = str(random.getrandbits(64))
    settings.load_profile("same" if seed_of(config) is None else "others")


def import_all_that_examples_depend_on(items: Iterable[pytest.Item]) -> None:
    """Before the first of these tests runs: import the modules whose constants Hypothesis draws, if one draws any.

    It takes a second of CPU, and two more when Hypothesis reads the constants of a new release for the first time.
    """
    if any(item.get_closest_marker("hypothesis") for item in items):
        for module in pkgutil.walk_packages(apiserver.__path__, f"{apiserver.__name__}."):
            if not module.name.endswith(".__main__"):
                import_module(module.name)


def seed_of(config: pytest.Config) -> str | None:
    """The seed of examples that are not those of every run."""
    seed: str | None = config.option.hypothesis_seed
    return seed


# No test says how fast this machine is, and no run knows what another one found.
_ANYWHERE = settings(examples(50), deadline=None, database=None, suppress_health_check=list(HealthCheck))
settings.register_profile("others", _ANYWHERE)
settings.register_profile("same", _ANYWHERE, derandomize=True)
