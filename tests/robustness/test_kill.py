"""kill -9 of the server and its commands, wherever they are: everything acknowledged is there once, nothing by half.

`EVENTS_KILLS=100 pytest tests/robustness/test_kill.py` kills more often; so does `python -m tests.robustness.kills`.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.robustness import kills

KILLS = int(os.environ.get("EVENTS_KILLS", "2"))


@pytest.mark.parametrize("durability", ["process", "fsync"])
def test_a_killed_server_has_everything_acknowledged_once(tmp_path: Path, dice: random.Random, durability: str) -> None:
    assert kills.serving(tmp_path, dice, KILLS, durability).compared > 0


@pytest.mark.parametrize("way", [kills.starting, kills.backing_up, kills.copying])
def test_what_was_killed_goes_on(tmp_path: Path, dice: random.Random, way: kills.Way) -> None:
    assert way(tmp_path, dice, KILLS).compared > 0


def test_a_killed_copy_to_engines_goes_on(
    tmp_path: Path, dice: random.Random, elasticsearch_url: str, mongodb_url: str
) -> None:
    assert kills.copying(tmp_path, dice, KILLS, (elasticsearch_url, mongodb_url)).compared > 0
