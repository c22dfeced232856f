"""kill -9 of the served process while clients write: everything acknowledged is there once, nothing is there by half.

`EVENTS_KILLS=100 pytest tests/robustness/test_kill.py` kills more often.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pytest

from tests.harness import Served, served, wait_until
from tests.robustness.writers import Writer, acknowledged, assert_stored, new_task, writing

KILLS = int(os.environ.get("EVENTS_KILLS", "3"))
KILLS_A_TASK = 10


def new_writers(server: Served) -> list[Writer]:
    """Writers to two tasks, two to each."""
    return [Writer(server, task, name) for task in (new_task(server), new_task(server)) for name in ("one", "two")]


def kill_under_load(server: Served, writers: list[Writer], batches: int) -> None:
    """Kill the server when about so many more batches are acknowledged."""
    goal = acknowledged(writers) + batches
    with writing(writers):
        wait_until(lambda: acknowledged(writers) >= goal)
        server.kill()


@pytest.mark.parametrize("durability", ["process", "fsync"])
def test_a_killed_server_has_everything_acknowledged_once(tmp_path: Path, dice: random.Random, durability: str) -> None:
    written: list[Writer] = []
    # So few that a merge is nearly always under way.
    with served(tmp_path / "data", durability=durability, merge_events=200) as server:
        for number in range(KILLS):
            if number % KILLS_A_TASK == 0:
                writers = new_writers(server)
                written += writers
            kill_under_load(server, writers, dice.randrange(10, 300))
            if dice.random() < 0.25:  # a start is killed, too
                server.launch()
                time.sleep(dice.uniform(0, 1.5))
                server.kill()
            server.start()
            assert_stored(server, writers)
        with writing(writers):  # what was not answered is sent again, at last
            goal = acknowledged(writers) + 20
            wait_until(lambda: acknowledged(writers) >= goal)
        assert_stored(server, written)
        server.stop()
        server.start()
        assert_stored(server, written)
        assert "Traceback" not in server.log.read_text()
