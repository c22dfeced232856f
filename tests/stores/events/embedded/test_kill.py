"""kill -9 at any moment: everything acknowledged is there, exactly once, and told to those who had not seen it.

`EVENTS_KILLS=100 pytest tests/stores/events/embedded/test_kill.py` kills more often.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pytest

from apiserver.events.changes import ChangesQuery, Cursor
from apiserver.events.model import EventType, SeriesName
from apiserver.events.queries import PageQuery, SeriesQuery
from apiserver.stores.events.embedded.store import EmbeddedEventStore
from tests.contract.event_stores import iters, messages
from tests.stores.events.embedded.adding import OWNERS, POINTS, numbered

pytestmark = pytest.mark.anyio

KILLS = int(os.environ.get("EVENTS_KILLS", "1"))
ROOT = Path(__file__).parents[4]


@dataclass
class Told:
    """What the adding process said before it was killed."""

    last: int
    """The number of the last acknowledged batch."""
    cursors: list[tuple[int, Cursor]]
    """For each batch, the number of the next one, and the cursor between the two."""


def add_until_killed(folder: Path, first: int, count: int, fsync: bool) -> Told:
    """Run the adding process, and kill it after about `count` batches."""
    command = [sys.executable, "-m", "tests.stores.events.embedded.adding", str(folder), str(first)]
    adding = subprocess.Popen(
        [*command, "fsync" if fsync else ""], stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ
    )
    assert adding.stdout is not None
    with adding:
        said = list(islice(adding.stdout, count))
        adding.send_signal(signal.SIGKILL)
        # What it said before it died was acknowledged, too.
        said += [line for line in adding.stdout if line.endswith("\n")]
    assert adding.returncode == -signal.SIGKILL
    pairs = [line.split(" ", 1) for line in said]
    return Told(int(pairs[-1][0]), [(int(number) + 1, json.loads(cursor)) for number, cursor in pairs])


@pytest.mark.check
@pytest.mark.parametrize("fsync", [False, True])
async def test_a_killed_store_has_everything_acknowledged_once(
    tmp_path: Path, dice: random.Random, fsync: bool
) -> None:
    stored, cursors = 0, list[tuple[int, Cursor]]()
    for _ in range(KILLS):
        told = add_until_killed(tmp_path, stored, dice.randrange(20, 400), fsync)
        store = EmbeddedEventStore(tmp_path)
        await store.open()
        stored = await batches_in(store)
        assert stored in (told.last + 1, told.last + 2)  # the batch under way may be there or not
        cursors += told.cursors
        for first, cursor in [*told.cursors[-5:], *dice.sample(cursors, 10)]:
            await assert_told(store, cursor, first, stored)
        await store.add(numbered(stored - 1))
        assert await batches_in(store) == stored
        await store.close()
    with closing(sqlite3.connect(tmp_path / "events.db")) as connection:
        assert connection.execute("SELECT count(*) FROM chunk_index WHERE sealed").fetchone()[0] > 0


async def assert_told(store: EmbeddedEventStore, cursor: Cursor, first: int, stored: int) -> None:
    """A reader who has seen the batches before the first is told of it and all that follow."""
    found = (await store.changes(ChangesQuery(OWNERS, cursor))).owners
    if first == stored:
        assert found == {}
        return
    assert found.keys() == set(OWNERS)
    for changed in (one for one in found.values() if not one.everything):
        ends = changed.series[SeriesName(EventType.SCALAR, "loss", "train")]
        assert ends.least <= POINTS * first
        assert ends.greatest == POINTS * stored - 1
        assert changed.log_lines >= stored - first


async def batches_in(store: EmbeddedEventStore) -> int:
    """How many of the numbered batches are there, each wholly and once."""
    count = await store.log_count(SeriesQuery(OWNERS[0], EventType.LOG))
    for owner in OWNERS:
        assert await messages(store, SeriesQuery(owner, EventType.LOG)) == [str(n) for n in range(count)]
        points = await store.scalar_points(SeriesQuery(owner, EventType.SCALAR), PageQuery(10**6))
        assert points.iters.tolist() == points.values.tolist() == list(range(POINTS * count))
    assert await iters(store, SeriesQuery(OWNERS[0], EventType.PLOT)) == list(range(count))
    return count
