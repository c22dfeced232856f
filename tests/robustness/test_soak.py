"""A server under the load of a team, for some time: nothing grows, and nothing is lost.

`EVENTS_SOAK_SECONDS=1200 pytest tests/robustness/test_soak.py` takes longer, as `python -m tests.robustness.soak` does.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.robustness import soak

SECONDS = float(os.environ.get("EVENTS_SOAK_SECONDS", "120"))


def test_nothing_grows_and_nothing_is_lost(tmp_path: Path) -> None:
    load = soak.Load(readers=3, watchers=5, deleters=1, retained=1, pause=4.0)
    backups = tmp_path / "backups"
    with soak.kept_short(tmp_path / "data", load, merge_events=2000) as server:
        soaked, writers = soak.soak(server, SECONDS, load, backups)
        soak.assert_kept(server, writers)
    soak.assert_backed_up(soaked, writers, backups)
    assert soaked.deleted > 0
    assert soaked.retained > 0
    assert soaked.told > 0
    assert soak.complaints(soaked) == []


def test_a_load_that_ends_before_the_first_backup_has_none_to_look_at(tmp_path: Path) -> None:
    soak.assert_backed_up(soak.Soaked(60, 100), [], tmp_path / "backups")


#: By what else a value rises.
_SLOWS = {"call": "machine"}


def steady(rises: str | None = None, by: float = 0.0) -> soak.Soaked:
    """A load of 1,000 seconds in which nothing grows, but for one thing, by so much in all."""
    usual = {"memory": 200.0, "files": 100, "threads": 20, "disk": 0.0, "call": 0.1}
    soaked = soak.Soaked(1000, 10_000)
    for at in range(1000):
        values: dict[str, Any] = {
            name: value + (by * at / 1000 if rises in (name, _SLOWS.get(name)) else 0) for name, value in usual.items()
        }
        took = values.pop("call")
        soaked.calls.setdefault("a call", []).append((at, took))
        soaked.calls.setdefault(soak.PING, []).append((at, took / 50 if rises == "machine" else 0.002))
        values["disk"] += at / 400  # each of ten batches a second takes a quarter of a kilobyte
        soaked.noted.append(soak.Noted(at=at, batches=at * 10, **values))
    return soaked


def test_a_load_in_which_nothing_grows_is_well() -> None:
    assert soak.complaints(steady()) == []
    assert soak.delays(steady()) == []


@pytest.mark.parametrize(
    ("rises", "by", "what"),
    [("memory", 45, "memory"), ("files", 21, "files"), ("threads", 11, "threads"), ("disk", 55, "disk")],
)
def test_growth_is_complained_of(rises: str, by: float, what: str) -> None:
    [complaint] = soak.complaints(steady(rises, by))
    assert what in complaint
    assert soak.complaints(steady(rises, by * 0.8)) == []


def test_calls_that_take_ever_longer_are_complained_of() -> None:
    [complaint] = soak.delays(steady("call", 0.6))
    assert complaint.startswith("a call: 299 ms more in the second half")
    assert soak.delays(steady("call", 0.1)) == []


def test_calls_of_a_machine_that_gets_slower_are_not() -> None:
    assert soak.delays(steady("machine", 0.6)) == []
