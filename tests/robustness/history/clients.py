"""Clients that call servers and record each call. Each is one thread, and makes one call after another."""

from __future__ import annotations

import http.client
import json
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any

from tests.harness import PATIENCE, Served, basic
from tests.robustness.history.events import Batch
from tests.robustness.history.operations import History, Operation, Outcome
from tests.robustness.history.tasks import GONE, NOTHING, PUBLISHED, STATUS, THERE, USED

FIRST_TIME = 1_700_000_000_000
POINTS, LINES = 3, 2
#: How many events of each kind a batch has.
EVENTS = {"points": POINTS, "lines": LINES}
#: By the subcode of an answer with status 400, why a call is refused.
_REASONS = {101: GONE, 110: STATUS, 123: USED, 201: GONE, 203: PUBLISHED, 706: THERE}
_PAUSE = 0.02


class Unanswered(Exception):
    """Nobody knows whether the call was done."""


class Away(Exception):
    """The server takes no connections: the call was not made."""


@dataclass
class Client:
    """Calls one server. When that is away, it waits until it is back."""

    name: str
    server: Served
    server_name: str
    history: History
    dice: random.Random
    pause: float = 0.0
    """Seconds between two calls."""
    answers: Counter[int] = field(default_factory=Counter)
    """How often each status was answered."""
    slowest: float = 0.0
    """Seconds of the slowest call."""
    _connection: http.client.HTTPConnection | None = None

    def repeat(self, step: Callable[[Client], None], stop: Event) -> None:
        """Make a step after another until told to stop."""
        while not stop.is_set():
            try:
                step(self)
            except Away:
                stop.wait(_PAUSE)
            stop.wait(self.pause * self.dice.uniform(0.5, 1.5))
        self.close()

    def close(self) -> None:
        """Close its connection; the next call opens one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def send(self, endpoint: str, body: str) -> tuple[int, dict[str, Any]]:
        """The status and the answer of a call."""
        began = time.monotonic()
        if self._connection is None:
            self._connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
            try:
                self._connection.connect()
            except OSError:
                self.close()
                raise Away from None
        try:
            self._connection.request("POST", f"/{endpoint}", body, {"Authorization": basic()})
            response = self._connection.getresponse()
            answer = json.loads(response.read())
        except (ConnectionError, http.client.HTTPException):
            self.close()
            raise Unanswered from None
        self.slowest = max(self.slowest, time.monotonic() - began)
        self.answers[response.status] += 1
        assert response.status in (200, 400, 429, 503), answer
        assert response.status not in (429, 503) or int(response.headers["Retry-After"]) >= 1, answer
        return response.status, answer

    def call(
        self,
        kind: str,
        on: str,
        endpoint: str,
        body: str | dict[str, Any],
        what: Any = None,
        read: Callable[[dict[str, Any]], Any] = lambda data: None,
    ) -> Operation:
        """Make a call and record it. What it answered is what `read` makes of the data."""
        began = time.monotonic()
        outcome, answer = Outcome.UNKNOWN, None
        try:
            status, said = self.send(endpoint, body if isinstance(body, str) else json.dumps(body))
        except Unanswered:
            pass
        else:
            if status == 200:
                outcome, answer = Outcome.DONE, read(said["data"])
            elif status == 400:
                code = said["meta"]["result_subcode"]
                outcome, answer = Outcome.REFUSED, _REASONS.get(code, f"{code}: {said['meta']['result_msg']}")
        ended = math.inf if outcome is Outcome.UNKNOWN else time.monotonic()
        called = Operation(self.name, self.server_name, kind, on, what, began, ended, outcome, answer)
        return self.history.add(called)


@dataclass
class Sender:
    """Sends batches to one task. One that was not acknowledged is sent again as it was, as the SDK does."""

    task: str
    number: int = 0

    def __call__(self, client: Client) -> None:
        body = "\n".join(map(json.dumps, self._events(client.name)))
        if client.call("write", self.task, "events.add_batch", body, self.number).outcome is not Outcome.UNKNOWN:
            self.number += 1

    def _events(self, name: str) -> Sequence[dict[str, Any]]:
        n = self.number
        common = {"task": self.task, "timestamp": FIRST_TIME + n}
        scalar = {**common, "type": "training_stats_scalar", "variant": name}
        return [
            *({**scalar, "metric": "all", "iter": n * POINTS + i, "value": n} for i in range(POINTS)),
            {**scalar, "metric": "newest", "iter": 0, "value": n},
            *({**common, "type": "log", "msg": f"{name} {n} {line}"} for line in range(LINES)),
        ]


@dataclass(frozen=True)
class EventReader:
    """Reads all events of a task."""

    tasks: Sequence[str]

    def __call__(self, client: Client) -> None:
        task = client.dice.choice(self.tasks)
        self.points(client, task)
        self.lines(client, task)

    def points(self, client: Client, task: str) -> None:
        """Read all points, and then those that are overwritten."""
        endpoint = "events.scalar_metrics_iter_histogram"
        asked = {"task": task, "samples": 0}
        client.call("read events", task, endpoint, asked, "points", _batches_of_points)
        client.call("read newest", task, endpoint, asked, "newest", _newest)

    def lines(self, client: Client, task: str) -> None:
        """Read up to 10,000 lines; a round has fewer."""
        asked = {"task": task, "navigate_earlier": False, "batch_size": 10_000}
        client.call("read events", task, "events.get_task_log", asked, "lines", _batches_of_lines)


def _batches_of_points(data: dict[str, Any]) -> dict[Batch, int]:
    found: Counter[Batch] = Counter()
    for name, curve in data.get("all", {}).items():
        for iter, value in zip(curve["x"], curve["y"], strict=True):
            assert iter // POINTS == value, f"{name} has {value} at {iter}"
            found[name, int(value)] += 1
    return dict(found)


def _newest(data: dict[str, Any]) -> dict[str, int]:
    return {name: int(curve["y"][-1]) for name, curve in data.get("newest", {}).items()}


def _batches_of_lines(data: dict[str, Any]) -> dict[Batch, int]:
    lines = [event["msg"].split() for event in data["events"]]
    return dict(Counter((name, int(n)) for name, n, _ in lines))


@dataclass(frozen=True)
class EventDeleter:
    """Deletes all events of a task, now and then."""

    task: str

    def __call__(self, client: Client) -> None:
        client.call("delete events", self.task, "events.delete_for_task", {"task": self.task})


@dataclass(frozen=True)
class Runner:
    """Changes the status of tasks, any to any, and reads it. A new task soon replaces one that is published or gone."""

    tasks: list[str]

    def __call__(self, client: Client) -> None:
        place = client.dice.randrange(len(self.tasks))
        task, kind = self.tasks[place], client.dice.choice(_CHANGES)
        if client.dice.random() < 0.3:
            done = read_status(client, task)
        else:
            endpoint, _, by_force = kind.partition(" ")
            done = client.call(kind, task, f"tasks.{endpoint}", {"task": task, "force": bool(by_force)})
        if done.answer in (GONE, "published") and client.dice.random() < 0.5:
            created = client.call("create", "", "tasks.create", {"name": "a run", "type": "training"}, read=_id)
            if created.is_done:
                self.tasks[place] = created.answer


_CHANGES = ["started", "stopped", "publish", "reset"] * 3 + [
    "failed",
    "completed",
    "close",
    "delete",
    "delete by force",
]


@dataclass(frozen=True)
class ModelUser:
    """Publishes the draft models of tasks, deletes the tasks, and reads the models. New ones soon replace them."""

    models: list[tuple[str, str]]
    """Each task with its model."""

    def __call__(self, client: Client) -> None:
        place = client.dice.randrange(len(self.models))
        task, model = self.models[place]
        match client.dice.randrange(3):
            case 0:
                body = {"model": model, "publish_task": False}
                done = client.call("publish model", task, "models.set_ready", body)
            case 1:
                done = client.call("delete with model", task, "tasks.delete", {"task": task})
            case _:
                done = read_model(client, task, model)
        if done.answer in (GONE, USED, PUBLISHED) and client.dice.random() < 0.5:
            created = client.call("create", "", "tasks.create", {"name": "a run", "type": "training"}, read=_id)
            if created.is_done:
                made = client.call(
                    "create model", "", "models.update_for_task", {"task": created.answer, "uri": "u"}, read=_id
                )
                if made.is_done:
                    self.models[place] = created.answer, made.answer


def read_model(client: Client, task: str, model: str) -> Operation:
    """Read whether the model of a task is published."""

    def state(data: dict[str, Any]) -> str:
        return "published" if data["model"]["ready"] else "draft"

    return client.call("read model", task, "models.get_by_id", {"model": model}, read=state)


def _id(data: dict[str, Any]) -> str:
    return str(data["id"])


def read_status(client: Client, task: str) -> Operation:
    """Read the status of a task."""
    return client.call("read", task, "tasks.get_by_id", {"task": task}, read=lambda data: data["task"]["status"])


@dataclass(frozen=True)
class Worker:
    """Takes tasks out of a queue, and runs them."""

    queue: str

    def __call__(self, client: Client) -> None:
        if task := take(client, self.queue).answer:
            client.call("started", task, "tasks.started", {"task": task})
            read_status(client, task)
            client.call(end := client.dice.choice(["stopped", "failed"]), task, f"tasks.{end}", {"task": task})


def take(client: Client, queue: str) -> Operation:
    """Take the next task out of a queue; it answers None if there is none."""
    return client.call("pop", queue, "queues.get_next_task", {"queue": queue}, read=_taken)


def _taken(data: dict[str, Any]) -> str | None:
    return str(data["entry"]["task"]) if data else None


@dataclass(frozen=True)
class Enqueuer:
    """Puts tasks into a queue, and sometimes takes one out of it again."""

    queue: str
    tasks: Sequence[str]

    def __call__(self, client: Client) -> None:
        task, number = client.dice.choice(self.tasks), client.dice.random()
        if number < 0.15:
            client.call("dequeue", task, "tasks.dequeue", {"task": task}, read=_given_back)
        elif number < 0.3:
            read_status(client, task)
        else:
            client.call("enqueue", task, "tasks.enqueue", {"task": task, "queue": self.queue})


def _given_back(data: dict[str, Any]) -> str:
    return str(data["fields"]["status"]) if data["updated"] else NOTHING
