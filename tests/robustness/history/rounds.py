"""In a round, many clients call at once. Each round has tasks of its own, and is checked when it ends."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from threading import Event

from tests.harness import Served, wait_until
from tests.robustness.history.clients import (
    EVENTS,
    Client,
    Enqueuer,
    EventDeleter,
    EventReader,
    ModelUser,
    Runner,
    Sender,
    Worker,
    read_model,
    read_status,
    take,
)
from tests.robustness.history.events import wrong_events, wrong_newest
from tests.robustness.history.operations import History, Outcome
from tests.robustness.history.tasks import wrong_entries, wrong_models, wrong_statuses
from tests.robustness.writers import new_task

#: The name of the server that sees at once what others acknowledged.
STRICT = "strict"
#: Seconds between two calls of a client: the search for an order takes long if many calls overlap.
_PAUSE = 0.03


@dataclass(slots=True)
class Counted:
    """What happened in all rounds."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    answers: Counter[int] = field(default_factory=Counter)
    kills: int = 0
    slowest: float = 0.0
    """Seconds of the slowest call that was answered."""
    wrong: list[str] = field(default_factory=list)

    def add(self, history: History, clients: Iterable[Client]) -> None:
        """Count a round."""
        self.outcomes += history.outcomes()
        self.kinds += Counter(one.kind for one in history.operations)
        for client in clients:
            self.answers += client.answers
            self.slowest = max(self.slowest, client.slowest)


class Round:
    """The tasks of a round, its clients, and what they did."""

    def __init__(self, servers: Mapping[str, Served], dice: random.Random, models: int) -> None:
        self.history = History()
        self._servers = servers
        self._dice = dice
        self.clients: list[Client] = []
        [first, *_] = servers.values()
        self.kept, self.emptied, self.published = (new_task(first) for _ in range(3))
        self._runs = [new_task(first) for _ in range(2)]
        self._waiting = [new_task(first) for _ in range(4)]
        self._models = [_with_model(first) for _ in range(models)]
        self._queue: str = first.call("queues.create", {"name": f"queue {self.kept}"})["id"]
        first.call("tasks.started", {"task": self.published})
        first.call("tasks.stopped", {"task": self.published})
        first.call("tasks.publish", {"task": self.published})

    @contextmanager
    def running(self) -> Iterator[None]:
        """All clients call while inside."""
        events, stop = (self.kept, self.emptied, self.published), Event()
        steps: list[tuple[Callable[[Client], None], float]] = [
            *((Sender(task), _PAUSE) for task in events[:2] for _ in range(2 * len(self._servers))),
            (Sender(self.published), 10 * _PAUSE),
            *((EventReader(events), 4 * _PAUSE) for _ in range(2 * len(self._servers))),
            (EventDeleter(self.emptied), 20 * _PAUSE),
            *((Runner(self._runs), _PAUSE / 10) for _ in range(6)),
            *((ModelUser(self._models), _PAUSE) for _ in range(3) if self._models),
            *((Enqueuer(self._queue, self._waiting), 2 * _PAUSE) for _ in range(2)),
            *((Worker(self._queue), 2 * _PAUSE) for _ in range(3)),
        ]
        with ThreadPoolExecutor(len(steps)) as threads:
            calling = []
            for (step, pause), name in zip(steps, cycle(self._servers)):
                client = self._client(name, pause)
                calling.append(threads.submit(client.repeat, step, stop))
            try:
                yield
            finally:
                stop.set()
            for one in calling:
                one.result()

    def wrong(self) -> list[str]:
        """Read everything once more, and return what the servers must not have answered."""
        reader = self._client(STRICT, 0)
        self._read_all(reader)
        while take(reader, self._queue).answer:
            pass
        reader.close()
        return [
            *wrong_events(self.history, [STRICT], EVENTS),
            *wrong_newest(self.history, [STRICT]),
            *wrong_statuses(self.history),
            *wrong_models(self.history),
            *wrong_entries(self.history),
        ]

    def _client(self, server: str, pause: float) -> Client:
        name = f"client-{len(self.clients)}"
        dice = random.Random(self._dice.random())
        self.clients.append(Client(name, self._servers[server], server, self.history, dice, pause))
        return self.clients[-1]

    def _read_all(self, reader: Client) -> None:
        events = EventReader([])
        for task in (self.kept, self.emptied, self.published):
            events.points(reader, task)
            events.lines(reader, task)
        for task in [*self._runs, *self._waiting]:
            read_status(reader, task)
        for task, model in self._models:
            read_model(reader, task, model)


def _with_model(server: Served) -> tuple[str, str]:
    """A new task, and the draft model that it made."""
    task = new_task(server)
    return task, server.call("models.update_for_task", {"task": task, "uri": "u"})["id"]


def run_round(
    servers: Mapping[str, Served],
    dice: random.Random,
    counted: Counted,
    disturb: Callable[[History], None],
    models: int = 2,
) -> None:
    """Run clients while `disturb` does something to the servers. What is wrong, and how much was done, is in `counted`.

    servers: by name. The one called STRICT sees at once what others acknowledged.
    models: how many tasks have a draft model, which clients publish, and delete with its task.
    """
    one = Round(servers, dice, models)
    with one.running():
        disturb(one.history)
    counted.wrong += one.wrong()
    counted.add(one.history, one.clients)


def wait_for(history: History, calls: int) -> None:
    """Return when so many more calls have ended."""
    goal = len(history.operations) + calls
    wait_until(lambda: len(history.operations) >= goal)


@dataclass
class Kills:
    """Kills one of the servers several times, and starts it again."""

    servers: Sequence[Served]
    dice: random.Random
    counted: Counted
    times: int

    def __call__(self, history: History) -> None:
        for _ in range(self.times):
            wait_for(history, self.dice.randrange(20, 400))
            server = self.dice.choice(self.servers)
            server.kill()
            self.counted.kills += 1
            server.start()
        wait_for(history, 200)
