"""Clients of servers on shared engines. They write, read and delete over HTTP, and know what they were promised.

A call that is answered 429 or 503, with `Retry-After`, is made again. A reader must find all that its server had
acknowledged before; a deleter, what it sent, and nothing of that after it has deleted it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import httpx

from tests.harness import Served, wait_until
from tests.robustness.writers import LINES, Writer, beside, is_stored, new_task, writing

#: Seconds between two batches of a writer, and between two calls of others.
_PAUSE = 0.1
#: Seconds for an answer: nodes that start leave little of a small machine to others.
_PATIENCE = 600


@dataclass
class Caller:
    """Makes steps of several calls to one server, one after another."""

    server: Served
    done: int = 0
    """How many steps."""
    refused: int = 0
    """How many calls were answered 429 or 503, and made again."""

    def repeat(self, stop: Event) -> None:
        """Make steps until told to stop."""
        with self.server.client() as client:
            while not stop.is_set():
                self.step(client)
                self.done += 1
                stop.wait(_PAUSE)

    def step(self, client: httpx.Client) -> None:
        raise NotImplementedError

    def call(self, client: httpx.Client, endpoint: str, body: str | dict[str, Any]) -> dict[str, Any]:
        """The data that a call answers in the end."""
        content = body if isinstance(body, str) else json.dumps(body)
        found: dict[str, Any] = {}

        def is_answered() -> bool:
            answer = client.post(f"/{endpoint}", content=content)
            assert answer.status_code in (200, 429, 503), answer.text
            if answer.status_code != 200:
                assert int(answer.headers["Retry-After"]) >= 1
                self.refused += 1
                return False
            found.update(answer.json()["data"])
            return True

        wait_until(is_answered, _PATIENCE)
        return found


def _points_and_lines(caller: Caller, client: httpx.Client, task: str) -> tuple[dict[str, set[int]], int]:
    """The iterations of the series `risen` by variant, and the number of log lines."""
    curves = caller.call(client, "events.scalar_metrics_iter_histogram", {"task": task, "samples": 0})
    lines = caller.call(client, "events.get_task_log", {"task": task, "batch_size": 1})["total"]
    return {variant: set(curve["x"]) for variant, curve in curves.get("risen", {}).items()}, lines


@dataclass
class Reader(Caller):
    """Reads a task, into which others write."""

    writers: Sequence[Writer] = ()
    """Those whose batches must be seen at once."""

    def step(self, client: httpx.Client) -> None:
        acknowledged = [writer.acknowledged for writer in self.writers]
        points, lines = _points_and_lines(self, client, self.writers[0].task)
        for writer, count in zip(self.writers, acknowledged, strict=True):
            missing = writer.expected(count).points.get("risen", {}).keys() - points.get(writer.name, set())
            assert not missing, f"of {writer.name} points are missing"
        assert lines >= LINES * sum(acknowledged), "lines are missing"


@dataclass
class Deleter(Caller):
    """Sends a batch to a task of its own, and deletes it."""

    task: str = ""

    def step(self, client: httpx.Client) -> None:
        sent = [*Writer(self.server, self.task, "deleted").batch(self.done)]
        iterations = {event["iter"] for event in sent if event.get("metric") == "risen"}
        self.call(client, "events.add_batch", "\n".join(map(json.dumps, sent)))
        assert _points_and_lines(self, client, self.task) == ({"deleted": iterations}, LINES)
        self.call(client, "events.delete_for_task", {"task": self.task})
        assert _points_and_lines(self, client, self.task) == ({}, 0)


@dataclass
class Clients:
    """Writers of one task at all servers, and a reader and a deleter at each. One server is strict."""

    servers: dict[str, Served]
    """By their consistency: "session" or "strict"."""
    writers: list[Writer] = field(default_factory=list)
    others: list[Caller] = field(default_factory=list)

    def __post_init__(self) -> None:
        task = new_task(self.servers["session"])
        self.writers = [
            Writer(server, task, f"{name} {n}", pause=_PAUSE) for name, server in self.servers.items() for n in range(2)
        ]
        for name, server in self.servers.items():
            seen = [writer for writer in self.writers if name == "strict" or writer.server is server]
            self.others += [Reader(server, writers=seen), Deleter(server, task=new_task(server))]

    @contextmanager
    def calling(self) -> Iterator[None]:
        """All call while inside. Afterwards each server has exactly what was acknowledged."""
        with writing(self.writers), beside(one.repeat for one in self.others):
            yield
        for server in self.servers.values():
            wait_until(lambda: is_stored(server, self.writers), _PATIENCE)  # noqa: B023 - it is called at once

    def go_on(self) -> None:
        """Return when each has done more."""
        written = [writer.acknowledged + 5 for writer in self.writers]
        done = [other.done + 1 for other in self.others]
        _wait_until_all(lambda: [writer.acknowledged for writer in self.writers], written)
        _wait_until_all(lambda: [other.done for other in self.others], done)

    def are_refused(self) -> None:
        """Return when each writer was told to come back, again and again."""
        goals = [len(writer.refusals) + 3 for writer in self.writers]
        _wait_until_all(lambda: [len(writer.refusals) for writer in self.writers], goals)


def _wait_until_all(now: Callable[[], list[int]], goals: Sequence[int]) -> None:
    wait_until(lambda: all(value >= goal for value, goal in zip(now(), goals, strict=True)), _PATIENCE)
