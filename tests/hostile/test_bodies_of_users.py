"""The same bodies of callers that are known: they may be larger, and others still do not wait."""

from __future__ import annotations

import contextlib
import json
from functools import partial

import pytest

from tests.harness import basic
from tests.hostile.bodies import ENCODED, JSON, compressed, encoded
from tests.hostile.conftest import LONG, TOGETHER
from tests.hostile.target import OF_USERS, Target, at_once
from tests.longer import beyond

PATHS = ("/events.add_batch", "/tasks.get_all_ex", "/tasks.edit")
ANSWERS = {0, 200, 400, 413, 415, 429, 503}


def attack(target: Target, body: bytes, coding: str) -> None:
    with target.attacked(OF_USERS):
        for number, path in enumerate(PATHS[: None if LONG else 2]):
            send = partial(target.send, path, body, {"Content-Encoding": coding}, known=True)
            assert set(at_once(TOGETHER if LONG or number == 0 else 1, send)) <= ANSWERS


#: What `make check` sends: of bodies that are alike to a reader, one.
SOME = [
    *("ones and NaN", "empty lists", "objects 16 MB deep", "a million names", "escapes", "a long number"),
    *("a million short lines", "odd lines of NaN"),
]


@pytest.mark.parametrize("name", JSON if LONG else beyond(SOME, JSON))
def test_json(target: Target, name: str) -> None:
    attack(target, compressed(name), "gzip")


@pytest.mark.parametrize("name", ENCODED)
def test_encodings(target: Target, name: str) -> None:
    attack(target, encoded(name), ENCODED[name][0])


@pytest.mark.parametrize("name", ["empty gzip members", "empty zstd frames", "ones and NaN"])
def test_bodies_whose_senders_have_gone_keep_nobody_out(target: Target, name: str) -> None:
    body, coding = (encoded(name), ENCODED[name][0]) if name in ENCODED else (compressed(name), "gzip")
    head = (
        f"POST /events.add_batch HTTP/1.1\r\nHost: here\r\nAuthorization: {basic()}\r\nContent-Encoding: {coding}\r\n"
    )
    with target.attacked(OF_USERS):
        for _ in range(4):
            with target.connect() as connection, contextlib.suppress(OSError):
                connection.sendall(head.encode() + body)


def test_a_batch_of_very_many_series_and_what_is_asked_of_them(target: Target) -> None:
    with target.attacked(OF_USERS):
        task = target.server.call("tasks.create", {"name": "of many series", "type": "training"})["id"]
        point = b'{"type":"training_stats_scalar","task":"%b","iter":1,"value":1,"metric":"m%d","variant":"v%d"}'
        body = b"\n".join([point % (task.encode(), n // 10, n) for n in range(120_000)])
        target.send("/events.add_batch", body, known=True)
        asked = json.dumps({"task": task}).encode()
        for path in ("/events.scalar_metrics_iter_histogram", "/events.get_task_latest_scalar_values"):
            target.send(path, asked, known=True)
        target.send("/tasks.get_by_id", asked, known=True)
        assert target.statuses == {200: 4}
