"""SIGTERM while an attack is under way: the server ends in its time, and what it acknowledged is there afterwards."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.harness import basic, wait_until
from tests.hostile.bodies import ENCODED, compressed, encoded
from tests.hostile.conftest import LONG, PLACES, place
from tests.hostile.target import Target

#: Seconds that requests have to end. The process has 20 more, and ends itself hard then.
_PATIENCE = 2
_KNOWN = f"Host: here\r\nAuthorization: {basic()}\r\n"


@pytest.fixture(params=PLACES if LONG else PLACES[:1])
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with place(request, tmp_path_factory, shutdown_seconds=_PATIENCE) as target:
        yield target


Attack = Callable[[Target, threading.Event], None]


def half(target: Target, stopped: threading.Event, beginning: str, drop: bytes) -> None:
    """A request that hardly comes on."""
    with target.connect() as connection, contextlib.suppress(OSError):
        connection.sendall(f"{beginning}{_KNOWN}Content-Length: 1000000\r\n\r\n".encode())
        while not stopped.wait(0.05):
            connection.sendall(drop)


def wanting(target: Target, stopped: threading.Event, path: str, body: bytes, coding: str) -> None:
    """The same request again and again, without waiting for answers."""
    head = f"POST {path} HTTP/1.1\r\n{_KNOWN}Content-Encoding: {coding}\r\nContent-Length: {len(body)}\r\n\r\n"
    with target.connect() as connection, contextlib.suppress(OSError):
        connection.settimeout(_PATIENCE)
        while not stopped.is_set():
            connection.sendall(head.encode() + body)


def silent(target: Target, stopped: threading.Event) -> None:
    with target.connect():
        stopped.wait()


def report(target: Target, stopped: threading.Event, acknowledged: list[int]) -> None:
    """Batches, one after the other."""
    while not stopped.is_set():
        iters = range(len(acknowledged), len(acknowledged) + 10)
        if add(target, iters) == 200:
            acknowledged.extend(iters)


ATTACKS: list[Attack] = [
    partial(half, beginning="POST /events.add_batch HTTP/1.1\r\n", drop=b" "),
    partial(half, beginning="PUT /files/half HTTP/1.1\r\n", drop=b"x"),
    partial(wanting, path="/events.add_batch", body=encoded("empty gzip members"), coding="gzip"),
    partial(wanting, path="/events.add_batch", body=compressed("odd lines of NaN"), coding="gzip"),
    partial(wanting, path="/tasks.get_all_ex", body=compressed("a million names"), coding="gzip"),
    partial(wanting, path="/auth.login", body=encoded("gzip bomb"), coding=ENCODED["gzip bomb"][0]),
    silent,
]


def test_it_stops_in_time_and_keeps_what_it_acknowledged(target: Target) -> None:
    acknowledged: list[int] = []
    stopped = threading.Event()
    senders: list[Attack] = [partial(report, acknowledged=acknowledged), *ATTACKS * (4 if LONG else 2)]
    with ThreadPoolExecutor(len(senders)) as threads, contextlib.ExitStack() as until_stopped:
        until_stopped.callback(stopped.set)
        under_way = [threads.submit(sender, target, stopped) for sender in senders]
        wait_until(lambda: len(acknowledged) >= 50)
        assert target.server.stop() == 0  # else it was ended hard, as it took longer than it may
    for sending in under_way:
        sending.result()
    log = target.server.log.read_text()
    assert "Traceback" not in log
    assert "ended hard" not in log
    assert not target.statuses[500]
    target.server.start()
    assert points(target) >= set(acknowledged)


def add(target: Target, iters: range) -> int:
    """What a batch of a point each is answered; 0: nothing."""
    common = {"task": target.task, "type": "training_stats_scalar", "metric": "kept", "variant": "v", "value": 1}
    lines = "\n".join(json.dumps({**common, "iter": iter}) for iter in iters)
    return target.send("/events.add_batch", lines.encode(), known=True)


def points(target: Target) -> set[int]:
    request = {"task": target.task, "metrics": [{"metric": "kept"}], "samples": 0}
    found = target.server.call("events.scalar_metrics_iter_histogram", request)
    return set(found["kept"]["v"]["x"])
