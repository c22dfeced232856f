"""A server under the load of a team, for some time: nothing grows, and nothing is lost.

`EVENTS_SOAK_SECONDS=1200 pytest tests/robustness/test_soak.py` takes longer, as `python -m tests.robustness.soak` does.
"""

from __future__ import annotations

import os
from pathlib import Path

from tests.harness import served
from tests.robustness import soak

SECONDS = float(os.environ.get("EVENTS_SOAK_SECONDS", "120"))


def test_nothing_grows_and_nothing_is_lost(tmp_path: Path) -> None:
    load = soak.Load(readers=3, watchers=5, deleters=1, pause=4.0)
    with served(tmp_path / "data", merge_events=2000) as server:
        soaked, writers = soak.soak(server, SECONDS, load)
        soak.assert_kept(server, writers)
    assert soaked.deleted > 0
    assert soaked.told > 0
    assert soak.complaints(soaked) == []
