"""kill -9 at any moment: everything acknowledged is there, exactly once.

`EVENTS_KILLS=100 pytest tests/stores/events/embedded/test_kill.py` kills more often.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from apiserver.events.model import EventType
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.event_stores import iters, messages
from tests.stores.events.embedded.adding import OWNERS, POINTS, numbered

pytestmark = pytest.mark.anyio

KILLS = int(os.environ.get("EVENTS_KILLS", "4"))
ROOT = Path(__file__).parents[4]


def add_until_killed(folder: Path, first: int, count: int, fsync: bool) -> int:
    """Run the adding process, kill it after about `count` batches; return the number of the last acknowledged."""
    command = [sys.executable, "-m", "tests.stores.events.embedded.adding", str(folder), str(first)]
    adding = subprocess.Popen(
        [*command, "fsync" if fsync else ""], stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ
    )
    assert adding.stdout is not None
    last = first - 1
    with adding:
        for line in adding.stdout:
            last = int(line)
            if last - first >= count:
                break
        adding.send_signal(signal.SIGKILL)
        # What it said before it died was acknowledged, too.
        whole = [line for line in adding.stdout if line.endswith("\n")]
        last = int(whole[-1]) if whole else last
    assert adding.returncode == -signal.SIGKILL
    return last


@pytest.mark.parametrize("fsync", [False, True])
async def test_a_killed_store_has_everything_acknowledged_once(
    tmp_path: Path, dice: random.Random, fsync: bool
) -> None:
    stored = 0
    for _ in range(KILLS):
        last = add_until_killed(tmp_path, stored, dice.randrange(20, 400), fsync)
        store = EmbeddedEventStore(tmp_path)
        await store.open()
        stored = await batches_in(store)
        assert stored in (last + 1, last + 2)  # the batch under way may be there or not
        await store.add(numbered(stored - 1))
        assert await batches_in(store) == stored
        await store.close()
    with closing(sqlite3.connect(tmp_path / "events.db")) as connection:
        assert connection.execute("SELECT count(*) FROM chunk_index WHERE sealed").fetchone()[0] > 0


async def batches_in(store: EmbeddedEventStore) -> int:
    """How many of the numbered batches are there, each wholly and once."""
    count = await store.log_count(SeriesQuery(OWNERS[0], EventType.LOG))
    for owner in OWNERS:
        assert await messages(store, SeriesQuery(owner, EventType.LOG)) == [str(n) for n in range(count)]
        points = await store.scalar_points(SeriesQuery(owner, EventType.SCALAR), PageQuery(10**6))
        assert points.iters.tolist() == points.values.tolist() == list(range(POINTS * count))
    assert await iters(store, SeriesQuery(OWNERS[0], EventType.PLOT)) == list(range(count))
    return count
