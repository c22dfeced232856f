"""Answers made of much that a known user stored: texts of megabytes, and very many lines of one millisecond."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any

import pytest

from tests.harness import basic
from tests.hostile.conftest import LONG
from tests.hostile.target import OF_USERS, Target, at_once
from tests.longer import beyond

#: How many texts of `SIZE` characters each task has, of each kind.
COUNT = 20 if LONG else 6
SIZE = 15 * 10**6
LINES = 300_000 if LONG else 60_000
TASKS = 3
#: How many ask at once: so many that they would take more memory than an attack may, had each one its answer in memory.
MOST = 16
TOGETHER = MOST if LONG else 10
#: Questions that are answered by pages. All ten answers to one of these take no more memory than an attack may.
BY_PAGES = {"plots of a task", "plot events", "log", "whole log"}


@pytest.fixture(scope="module")
def tasks(target: Target) -> list[str]:
    """Tasks with large texts in their plots, log lines and comments, and the first with very many lines as well."""
    return [_large_task(target, very_many_lines=not n) for n in range(TASKS)]


def _large_task(target: Target, *, very_many_lines: bool) -> str:
    text = "x" * SIZE
    task: str = target.server.call("tasks.create", {"name": "large", "type": "training", "comment": text[:SIZE]})["id"]
    events: Iterator[dict[str, Any]] = chain.from_iterable(
        (
            {"type": "plot", "iter": n // 4, "metric": "plots", "variant": f"{n}", "plot_str": text},
            {"type": "log", "timestamp": n, "msg": text},
        )
        for n in range(COUNT // TASKS + 1)
    )
    for event in events:
        body = json.dumps({"task": task, "worker": "w", **event})
        assert target.send("/events.add", body.encode(), known=True) == 200
    if very_many_lines:
        line = json.dumps({"task": task, "type": "log", "worker": "w", "timestamp": 10**12, "msg": "short"})
        for _ in range(LINES // 20_000):
            assert target.send("/events.add_batch", "\n".join([line] * 20_000).encode(), known=True) == 200
    return task


QUESTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "plots of a task": ("events.get_task_plots", {"iters": 100}),
    "plots of a task at once": ("events.get_task_plots", {"iters": 100, "no_scroll": True}),
    "plots of several": ("events.get_multi_task_plots", {"iters": 100}),
    "plots by iteration": ("events.plots", {"iters": 100}),
    "plot events": ("events.get_task_events", {"event_type": "plot", "batch_size": 10_000}),
    "all events": ("events.get_task_events", {"batch_size": 10_000}),
    "log": ("events.get_task_log", {"batch_size": 10_000, "navigate_earlier": False}),
    "newest of the log": ("events.get_task_log", {"batch_size": 1}),
    "search in the log": ("events.get_task_log", {"batch_size": 10_000, "search": {"text": "x"}}),
    "whole log": ("events.download_task_log", {}),
    "tasks": ("tasks.get_all", {}),
    "tasks by their comments": ("tasks.get_all", {"order_by": ["comment"], "only_fields": ["id"]}),
    "tasks and their parents": ("tasks.get_all_ex", {"only_fields": ["id", "parent.comment"]}),
}


#: What `make check` asks: each way of answering once.
SOME = ["plots of a task", "plots of a task at once", "plot events", "log", "whole log", "tasks by their comments"]


@pytest.mark.parametrize("name", QUESTIONS if LONG else beyond(SOME, QUESTIONS))
def test_large_answers_are_bounded(target: Target, tasks: list[str], name: str) -> None:
    endpoint, asked = QUESTIONS[name]
    if name == "plots by iteration":
        who: dict[str, Any] = {"metrics": [{"task": task} for task in tasks]}
    elif endpoint == "events.get_multi_task_plots":
        who = {"tasks": tasks}
    else:
        who = {"id": tasks} if endpoint.startswith("tasks.") else {"task": tasks[0]}
    send = partial(target.send, f"/{endpoint}", json.dumps({**who, **asked}).encode(), known=True)
    with target.attacked(OF_USERS):
        assert send() in (200, 400)
        assert set(at_once(MOST if name in BY_PAGES else TOGETHER, send)) <= {200, 400, 429}


@pytest.mark.parametrize("asked", [{"batch_size": 10_000}, {}], ids=str)
def test_clients_that_leave_right_after_asking(target: Target, asked: dict[str, Any]) -> None:
    lines = ({"type": "log", "task": target.task, "timestamp": n, "msg": "x" * 100} for n in range(10_000))
    assert target.send("/events.add_batch", "\n".join(map(json.dumps, lines)).encode(), known=True) == 200
    endpoint = "get_task_log" if asked else "download_task_log"
    content = json.dumps({"task": target.task, **asked})
    head = f"POST /events.{endpoint} HTTP/1.1\r\nHost: here\r\nAuthorization: {basic()}\r\n"
    request = f"{head}Content-Length: {len(content)}\r\n\r\n{content}".encode()
    with target.attacked(OF_USERS):
        for _ in range(1000):
            with target.connect() as connection:
                connection.sendall(request)


def test_a_call_that_follows_a_large_answer_on_its_connection_is_its_own(target: Target, tasks: list[str]) -> None:
    common = f"Host: here\r\nAuthorization: {basic()}\r\nContent-Type: application/json\r\n"
    asked = json.dumps({"task": tasks[0]})
    requests = [
        f"POST /{endpoint} HTTP/1.1\r\n{common}{more}Content-Length: {len(asked)}\r\n\r\n{asked}".encode()
        for endpoint, more in (("tasks.get_by_id", ""), ("tasks.clone", "Connection: close\r\n"))
    ]
    answer = target.send_raw(b"".join(requests))
    assert answer.count(b"HTTP/1.1 200 OK") == 2
