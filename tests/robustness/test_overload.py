"""More than the server can take: it says so (429, Retry-After), holds no more than it may, and loses nothing."""

from __future__ import annotations

import json
import socket
import sqlite3
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.harness import ADMIN_KEY, ADMIN_SECRET, PATIENCE, Served, served, wait_until
from tests.robustness.writers import FIRST_TIME, Task, Writer, assert_stored, new_task, writing

WAITING = 64 * 2**10
LARGEST = 2**20


@pytest.mark.parametrize("durability", ["process", "fsync"])
def test_writers_are_held_back_while_merging_is_behind(tmp_path: Path, durability: str) -> None:
    with served(tmp_path / "data", durability=durability, merge_events=200, max_unmerged_bytes=WAITING) as server:
        writers = [Writer(server, new_task(server), name) for name in ("one", "two")]
        with writing(writers):
            with closing(sqlite3.connect(tmp_path / "data" / "events" / "events.db", isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")  # no merge can begin
                wait_until(lambda: all(len(writer.refusals) > 3 for writer in writers))
                journals = (tmp_path / "data" / "events").glob("journal-*.log")
                assert sum(path.stat().st_size for path in journals) < 2 * WAITING
                Task(server, writers[0].task)  # reads go on
            goals = [writer.acknowledged + 20 for writer in writers]
            wait_until(lambda: all(one.acknowledged >= goal for one, goal in zip(writers, goals, strict=True)))
        assert 429 in writers[0].refusals
        assert_stored(server, writers)


def test_many_large_bodies_at_once_take_turns(tmp_path: Path) -> None:
    with served(tmp_path / "data", max_body_bytes=LARGEST, max_bytes_in_flight=2 * LARGEST) as server:
        task = new_task(server)
        with ThreadPoolExecutor(16) as threads:
            sent = sum(threads.map(lambda number: send_large(server, task, number), range(32)))
        points = server.call("events.scalar_metrics_iter_histogram", {"task": task, "samples": 0})["metric"]
        assert {variant: point["x"] for variant, point in points.items()} == {
            str(number): list(range(sent // 32)) for number in range(32)
        }


def test_bodies_that_hardly_come_keep_nobody_out(tmp_path: Path) -> None:
    known = f"Authorization: Basic {b64encode(f'{ADMIN_KEY}:{ADMIN_SECRET}'.encode()).decode()}"
    wanted = f"Content-Length: {LARGEST}\r\nExpect: 100-continue"
    head = f"POST /debug.ping HTTP/1.1\r\nHost: here\r\n{known}\r\n{wanted}\r\n\r\n"
    with served(tmp_path / "data", max_body_bytes=LARGEST, max_bytes_in_flight=LARGEST) as server, ExitStack() as open_:
        for _ in range(8):
            slow = open_.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE))
            slow.sendall(head.encode())
            assert slow.recv(100).startswith(b"HTTP/1.1 100")  # the body is being read
            slow.sendall(b"{")
        with server.client() as client:
            large = client.post("/debug.ping", content=json.dumps({"text": "x" * (LARGEST // 2)}))
        assert large.status_code == 200


def send_large(server: Served, task: str, variant: int) -> int:
    """Send a body of nearly the largest size until it is taken; how many points it has."""
    line = {"task": task, "type": "training_stats_scalar", "metric": "metric", "variant": str(variant)}
    count = LARGEST // 220
    body = "\n".join(json.dumps({**line, "iter": n, "value": n, "timestamp": FIRST_TIME + n}) for n in range(count))
    with server.client() as client:
        while (response := client.post("/events.add_batch", content=body)).status_code == 429:
            assert int(response.headers["Retry-After"]) >= 1
    assert response.json()["data"]["added"] == count
    return count
