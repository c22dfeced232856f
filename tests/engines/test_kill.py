"""kill -9 of servers that share engines, at any moment of writing, compacting, deleting and moving old documents.

Everything acknowledged is there once, what was deleted stays deleted, and whatever was killed goes on when it is begun
again. `EVENTS_KILLS=100 pytest tests/engines/test_kill.py` kills more often.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from apiserver.events.model import Owner
from apiserver.stores.events.columnar.bounds import ColumnarBounds
from apiserver.stores.events.elasticsearch.address import elasticsearch_address
from apiserver.stores.events.elasticsearch.bounds import ElasticsearchBounds
from apiserver.stores.events.elasticsearch.cluster import Cluster
from tests import warm
from tests.contract.event_stores import batch, lines, scalars
from tests.harness import PATIENCE, Served, served, wait_until
from tests.robustness.writers import Task, Writer, acknowledged, is_stored, new_task, writing
from tests.stores.events.elasticsearch.old_layout import OldServer

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
            wait_for(new, BATCHES)
        killed.start()
        for server in servers:
            kept = Task(server, task)
            for writer in old:
                expected = writer.expected(writer.acknowledged)
                assert kept.stored(writer).points == expected.points
                assert kept.stored(writer).lines == []
            wait_until(partial(is_stored, server, new))


POINTS, OLD_LINES, OLD_TASKS = 1000, 100, 6


def test_a_killed_move_of_old_documents_goes_on(tmp_path: Path, engines: dict[str, Any], dice: random.Random) -> None:
    """A server takes more events of one of the tasks meanwhile, and deletes all those of another one."""
    with served(tmp_path / "data", **engines) as server:
        tasks, deleted = [new_task(server) for _ in range(OLD_TASKS)], new_task(server)
        company = server.call("tasks.get_by_id", {"task": deleted})["task"]["company"]
        server.stop()
        asyncio.run(fill(engines["events"], [Owner(company, task) for task in (*tasks, deleted)]))
        server.start()
        before = [contents(server, task) for task in tasks]
        assert [len(points["variant"]["x"]) for points, _ in before] == [POINTS] * OLD_TASKS
        assert len(contents(server, deleted)[1]) == OLD_LINES
        writer = Writer(server, tasks[0], "meanwhile", pause=0.05)
        command = ["migrate", "--events", engines["events"], "--documents", engines["documents"]]
        # It waits a second for what a killed one left behind, not half a minute.
        short = {BOUNDS: ElasticsearchBounds(ColumnarBounds(lease=1))}
        migrate = partial(warm.Forked, command, os.environ, tmp_path / "migrate.log", constants=short)
        with writing([writer]):
            for number in range(KILLS):
                moving = migrate()
                time.sleep(dice.uniform(0, 2))
                if number == 0:
                    server.call("events.delete_for_task", {"task": deleted})
                moving.send_signal(signal.SIGKILL)
                moving.wait()
                assert [contents(server, task) for task in tasks] == before
                assert contents(server, deleted) == ({}, [])
            wait_for([writer], 5)
            assert migrate().wait(PATIENCE) == 0
            wait_for([writer], 5)
        assert [contents(server, task) for task in tasks] == before
        assert contents(server, deleted) == ({}, [])
        assert has_exactly(server, [writer])
        assert asyncio.run(old_indices(engines["events"])) == []


async def fill(address: str, owners: list[Owner]) -> None:
    """Keep points and lines of these owners as older versions did."""
    cluster = Cluster(elasticsearch_address(address), strict=False)
    old = OldServer(cluster)
    for owner in owners:
        points = scalars([n / 8 for n in range(POINTS)], metric="metric", variant="variant", owner=owner)
        texts = lines([f"line {n}" for n in range(OLD_LINES)], owner=owner, digest=b"body")
        await old.add(batch(points, texts))
    await cluster.client.indices.refresh(index=f"{cluster.prefix}-*")
    await cluster.close()


async def old_indices(address: str) -> list[str]:
    """The indices of documents that are still to be moved."""
    cluster = Cluster(elasticsearch_address(address), strict=False)
    found = await cluster.indices([f"{cluster.prefix}-{type}-*" for type in ("scalars", "logs")])
    await cluster.close()
    return [*found]


def contents(server: Served, task: str) -> tuple[dict[str, Any], list[str]]:
    """All points and lines of a task that were old documents."""
    points = server.call("events.scalar_metrics_iter_histogram", {"task": task, "samples": 0})
    log = server.call("events.get_task_log", {"task": task, "navigate_earlier": False, "batch_size": 5000})
    texts = [event["msg"] for event in log["events"]]
    return points.get("metric", {}), [text for text in texts if text.startswith("line ")]
