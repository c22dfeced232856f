"""What tests leave to chance: nothing, unless they are told to look longer, or elsewhere.

`make check` looks at the same examples each time and everywhere, so that what passes once passes for all who have the
same versions. With EVENTS_EXAMPLES or EVENTS_KILLS in the environment, or `--hypothesis-seed=7`, tests look at others:
those of the seed, or of one that is drawn, and told when a test fails.
"""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers


def examples(usual: int) -> settings:
    """How many examples a property test looks at."""
    return settings(max_examples=int(os.environ.get("EVENTS_EXAMPLES", usual)))


def choose(config: pytest.Config) -> None:
    """Choose what tests look at, before any is defined; the processes that run tests for this one get its options."""
    if seed_of(config) is None and ("EVENTS_EXAMPLES" in os.environ or "EVENTS_KILLS" in os.environ):
        config.option.hypothesis_seed = str(random.getrandbits(64))
    settings.load_profile("same" if seed_of(config) is None else "others")
    if seed_of(config) is None:
        # Hypothesis also draws constants of our modules, of those that are imported by then: not the same everywhere.
        pytest.MonkeyPatch().setattr(providers, "_get_local_constants", lambda: providers._local_constants)


def seed_of(config: pytest.Config) -> str | None:
    """The seed of examples that are not those of every run."""
    seed: str | None = config.option.hypothesis_seed
    return seed


# No test says how fast this machine is, and no run knows what another one found.
_ANYWHERE = settings(examples(50), deadline=None, database=None, suppress_health_check=list(HealthCheck))
settings.register_profile("others", _ANYWHERE)
settings.register_profile("same", _ANYWHERE, derandomize=True)
