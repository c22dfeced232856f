"""A server under the load of a team, for some time: nothing grows, and nothing is lost.

`EVENTS_SOAK_SECONDS=1200 pytest tests/robustness/test_soak.py` takes longer, as `python -m tests.robustness.soak` does.
"""

from __future__ import annotations

import os
from pathlib import Path

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
