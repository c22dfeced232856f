"""kill -9 of servers that share engines, at any moment of writing, compacting and deleting.

Everything acknowledged is there once, what was deleted stays deleted, and whatever was killed goes on when it is begun
again. `EVENTS_KILLS=100 pytest tests/engines/test_kill.py` kills more often.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from apiserver.stores.events.blocks.bounds import ColumnarBounds
from apiserver.stores.events.elasticsearch.bounds import ElasticsearchBounds
from tests.harness import Served, served, wait_until
from tests.robustness.writers import Task, Writer, acknowledged, is_stored, new_task, writing

KILLS = int(os.environ.get("EVENTS_KILLS", "1"))
KILLS_A_TASK = 10
#: Blocks of a series after which it is compacted, and how many batches of an owner are written: more than these.
FEWEST, BATCHES = 6, 15
DAY = 24 * 60 * 60
#: Seconds for which a killed server keeps the other from compacting and deleting. It is half a minute otherwise.
LEASE = 2.0
#: Where an engine has the bounds of its stores.
BOUNDS = "apiserver.stores.events.elasticsearch.engine.ElasticsearchEngine.bounds"


@pytest.fixture
def servers(tmp_path: Path, engines: dict[str, Any]) -> Iterator[list[Served]]:
    """Two servers that see at once what the other acknowledged."""
    with ExitStack() as running:
        constants = {BOUNDS: ElasticsearchBounds(ColumnarBounds(lease=LEASE, fewest=FEWEST, least_rest=0))}
        yield [
            running.enter_context(served(tmp_path / "data", consistency="strict", constants=constants, **engines))
            for _ in range(2)
        ]


def writers_of(servers: list[Served], task: str, name: str, **more: Any) -> list[Writer]:
    """A writer to the task by way of each server."""
    return [Writer(server, task, f"{name} {n}", **more) for n, server in enumerate(servers)]


def write(writers: list[Writer], batches: int) -> None:
    """Have each writer send more batches, and none be left half sent."""
    goals = [writer.acknowledged + batches for writer in writers]
    with writing(writers):
        wait_until(lambda: all(writer.acknowledged >= goal for writer, goal in zip(writers, goals, strict=True)))


def wait_for(writers: list[Writer], batches: int) -> None:
    """Return when so many more batches of all writers are acknowledged."""
    goal = acknowledged(writers) + batches
    wait_until(lambda: acknowledged(writers) >= goal)


def assert_kept(server: Served, writers: list[Writer]) -> None:
    """What was acknowledged is there, and nothing twice. Of the batch under way, some may be."""
    for writer in writers:
        stored, expected = Task(server, writer.task).stored(writer), writer.expected(writer.acknowledged)
        assert expected.points.get("risen", {}).items() <= stored.points.get("risen", {}).items()
        assert set(expected.lines) <= set(stored.lines)
        assert len(set(stored.lines)) == len(stored.lines)


def test_killed_servers_have_everything_acknowledged_once(servers: list[Served], dice: random.Random) -> None:
    written: list[Writer] = []
    for number in range(KILLS):
        if number % KILLS_A_TASK == 0:
            writers = [
                *writers_of(servers, new_task(servers[0]), "one"),
                *writers_of(servers, new_task(servers[0]), "two"),
            ]
            written += writers
        killed, other = dice.sample(servers, 2)
        with writing(writers):
            wait_for(writers, dice.randrange(10, 4 * BATCHES))
            killed.kill()
            wait_for(writers, 10)  # by the other one
        assert_kept(other, writers)
        if dice.random() < 0.25:  # a start is killed, too
            killed.launch()
            time.sleep(dice.uniform(0, 1.5))
            killed.kill()
        killed.start()
    write(writers, 5)  # what was not answered is sent again
    for server in servers:
        wait_until(partial(is_stored, server, written))
        assert "Traceback" not in server.log.read_text()


def has_exactly(server: Served, writers: list[Writer]) -> bool:
    """Whether the events of each writer are those acknowledged; what the task tells of deleted ones does not matter."""
    return all(one.is_all_of(Task(server, one.task).stored(one)) for one in writers)


def is_done(server: Served, endpoint: str, request: dict[str, Any]) -> bool:
    """Call a server; whether it did not tell to come back, as while a lease of a killed server lasts."""
    with server.client() as client:
        answer = client.post(f"/{endpoint}", json=request)
    assert answer.status_code == 200 or (answer.status_code == 503 and int(answer.headers["Retry-After"]) > 0)
    return answer.status_code == 200


def ask_and_kill(server: Served, seconds: float, endpoint: str, request: dict[str, Any]) -> bool:
    """Call a server, and kill it so soon after that; whether it had done what it was asked."""

    def ask() -> bool:
        try:
            return is_done(server, endpoint, request)
        except httpx.TransportError:
            return False

    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(ask)
        time.sleep(seconds)
        server.kill()
        return asked.result()


def test_what_was_deleted_stays_deleted(servers: list[Served], dice: random.Random) -> None:
    killed, other = servers
    for number in range(KILLS):
        task = new_task(other)
        write(writers_of(servers, task, "before"), BATCHES)  # both are about to compact the task
        if not ask_and_kill(killed, dice.uniform(0, 0.1), "events.delete_for_task", {"task": task}):
            other.call("events.delete_for_task", {"task": task})
        assert not other.call("events.scalar_metrics_iter_histogram", {"task": task})
        assert other.call("events.get_task_log", {"task": task})["total"] == 0
        killed.start()
        after = writers_of(servers, task, f"after {number}")
        write(after, BATCHES)
        for server in servers:
            wait_until(partial(has_exactly, server, after))
            assert not server.call("events.scalar_metrics_iter_histogram", {"task": task})["risen"].keys() - {
                writer.name for writer in after
            }
            total = server.call("events.get_task_log", {"task": task})["total"]
            assert total == sum(len(writer.expected(writer.acknowledged).lines) for writer in after)


def test_old_lines_go_and_new_lines_stay(servers: list[Served], dice: random.Random) -> None:
    killed, other = servers
    for _ in range(-(-KILLS // 3)):  # each may have to wait until a lease is over
        task = new_task(other)
        old = writers_of(servers, task, "old")
        new = writers_of([other], task, "new", first_time=time.time_ns() // 10**6, pause=0.03)
        write(old, BATCHES)
        request = {"task": task, "threshold_sec": DAY}
        with writing(new):
            if not ask_and_kill(killed, dice.uniform(0, 0.2), "events.clear_task_log", request):
                wait_until(partial(is_done, other, "events.clear_task_log", request))
            # Beyond the last iteration of the old ones, as the task tells only one, and one may be ahead of the other.
            wait_for(new, BATCHES + max(writer.acknowledged for writer in old))
        killed.start()
        for server in servers:
            kept = Task(server, task)
            for writer in old:
                expected = writer.expected(writer.acknowledged)
                assert kept.stored(writer).points == expected.points
                assert kept.stored(writer).lines == []
            wait_until(partial(is_stored, server, new))
