"""Writers that load a served server over HTTP, know what was acknowledged, and tell whether exactly that is stored.

A writer's batch n is the same whenever it is made. It has points in falling order (sometimes many of them), a point and
a plot that overwrite those of earlier batches, and log lines that share one timestamp.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Any

from tests.harness import PATIENCE, Served, basic

FIRST_TIME = 1_700_000_000_000
LINES = 3
_LONGEST_WAIT = 0.05
#: Seconds from one attempt to reach a server that is away to the next.
_AWAY = 0.1

Series = tuple[str, str]


@dataclass
class Stored:
    """What is stored of one writer."""

    points: dict[str, dict[int, float]]
    """Value by iteration by metric."""
    lines: list[str]
    plots: dict[int, int]
    """What is plotted, by iteration."""


@dataclass
class Writer:
    """Sends its batches one after the other to one task; several writers may share a task."""

    server: Served
    task: str
    name: str
    points: int = 10
    """In most batches, and 50 times as many in some."""
    first_time: int = FIRST_TIME
    """The timestamp of the events of batch 0, in ms. The events of each next batch are 1 ms later."""
    pause: float = 0.0
    """Seconds between two batches."""
    acknowledged: int = 0
    refusals: list[int] = field(default_factory=list)
    """The statuses of the answers that told it to come back."""

    def run(self, stop: Event) -> None:
        """Send batches until told to stop, or until the server does not answer; that batch is sent again next time."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        try:
            while not stop.is_set():
                self._send_next(connection, stop)
                stop.wait(self.pause)
        except (ConnectionError, http.client.HTTPException):
            return
        finally:
            connection.close()

    def _send_next(self, connection: http.client.HTTPConnection, stop: Event) -> None:
        body = "\n".join(map(json.dumps, self.batch(self.acknowledged)))
        connection.request("POST", "/events.add_batch", body, {"Authorization": basic()})
        response = connection.getresponse()
        answer = json.loads(response.read())
        if response.status == 200:
            assert answer["data"]["errors"] == 0, answer
            self.acknowledged += 1
            return
        assert response.status in (429, 503), answer
        assert int(response.headers["Retry-After"]) >= 1
        self.refusals.append(response.status)
        stop.wait(_LONGEST_WAIT)  # less than told: it shall be refused again and again

    # --- what it sends -----------------------------------------------------------------------------

    def batch(self, n: int) -> Iterator[dict[str, Any]]:
        """The events of batch n."""
        common = {"task": self.task, "timestamp": self.first_time + n}
        scalar = {**common, "type": "training_stats_scalar", "variant": self.name}
        for iter in reversed(self._iterations(n)):
            yield {**scalar, "metric": "risen", "iter": iter, "value": self._value(iter)}
        yield {**scalar, "metric": "overwritten", "iter": n % 7, "value": n}
        plot = {**common, "type": "plot", "metric": self.name, "variant": "plotted"}
        yield {**plot, "iter": n % 5, "plot_str": json.dumps(n)}
        for line in range(LINES):
            yield {**common, "type": "log", "msg": self._line(n, line), "level": "info"}

    def _iterations(self, n: int) -> range:
        """The iterations of batch n; one batch in 20 has many, and gaps follow it."""
        start = n * self.points * 50
        return range(start, start + self.points * (50 if n % 20 == 19 else 1))

    def _value(self, iter: int) -> float:
        return (iter * 2_654_435_761 % 1_000_003) / 8

    def _line(self, n: int, line: int) -> str:
        return f"{self.name} {n}.{line}"

    # --- what must be there ------------------------------------------------------------------------

    def expected(self, count: int) -> Stored:
        """What the first `count` batches leave, each kept once."""
        return Stored(
            {
                "risen": {iter: self._value(iter) for n in range(count) for iter in self._iterations(n)},
                "overwritten": {n % 7: n for n in range(count)},
            }
            if count
            else {},
            [self._line(n, line) for n in range(count) for line in range(LINES)],
            {n % 5: n for n in range(count)},
        )

    def is_all_of(self, stored: Stored) -> bool:
        """Whether each acknowledged batch is stored once, and the batch after these wholly or not at all."""
        return stored in (self.expected(self.acknowledged), self.expected(self.acknowledged + 1))


@contextmanager
def beside(works: Iterable[Callable[[Event], None]]) -> Iterator[None]:
    """Each work goes on in a thread while inside. What goes wrong in one of them is raised at the end."""
    stop, some = Event(), [*works]
    with ThreadPoolExecutor(len(some)) as threads:
        running = [threads.submit(work, stop) for work in some]
        try:
            yield
        finally:
            stop.set()
            for one in running:
                one.result()


@contextmanager
def writing(writers: Sequence[Writer], *, again: bool = False) -> Iterator[None]:
    """All writers write while inside; what goes wrong in one of them is raised at the end.

    again: a writer whose server does not answer goes on when that server is back; else it ends.
    """

    def write(writer: Writer, stop: Event) -> None:
        writer.run(stop)
        while again and not stop.wait(_AWAY):
            writer.run(stop)

    with beside(partial(write, writer) for writer in writers):
        yield


def assert_stored(server: Served, writers: Iterable[Writer]) -> None:
    """Everything acknowledged is stored once, the batch after it wholly or not at all, and the tasks tell of it."""
    tasks = {writer.task: Task(server, writer.task) for writer in writers}
    for writer in writers:
        task = tasks[writer.task]
        stored = task.stored(writer)
        assert writer.is_all_of(stored), writer.name
        assert task.last_metrics(writer) == {name: _summary(name, points) for name, points in stored.points.items()}
    for id, task in tasks.items():
        every = [writer for writer in writers if writer.task == id]
        iterations = [iter for writer in every for points in task.stored(writer).points.values() for iter in points]
        assert task.document["last_iteration"] == max(iterations, default=0)


def is_stored(server: Served, writers: list[Writer]) -> bool:
    """Whether `assert_stored` finds nothing wrong."""
    try:
        assert_stored(server, writers)
    except AssertionError:
        return False
    return True


def assert_a_moment(server: Served, writers: Sequence[Writer], before: Sequence[int], after: Sequence[int]) -> None:
    """Each writer's batches up to one that was sent while the backup was taken are there, wholly; and summaries fit."""
    for writer, least, most in zip(writers, before, after, strict=True):
        task = Task(server, writer.task)
        stored = task.stored(writer)
        count = len(stored.lines) // LINES
        assert least <= count <= most + 1
        assert stored == writer.expected(count)
        last = {metric: values["count"] for metric, values in task.last_metrics(writer).items()}
        assert last == {metric: len(points) for metric, points in stored.points.items()}


def acknowledged(writers: Iterable[Writer]) -> int:
    """How many batches of all writers were acknowledged."""
    return sum(writer.acknowledged for writer in writers)


def _summary(metric: str, points: dict[int, float]) -> dict[str, float]:
    values = points.values()
    newest = max(values) if metric == "overwritten" else points[max(points)]
    return {"value": newest, "min_value": min(values), "max_value": max(values), "count": len(values)}


class Task:
    """All that a server has of a task."""

    def __init__(self, server: Served, id: str) -> None:
        call = partial(_call, server)
        self.document: dict[str, Any] = call("tasks.get_by_id", task=id)["task"]
        self._histogram = call("events.scalar_metrics_iter_histogram", task=id, samples=0)
        self._plots = call("events.get_task_plots", task=id, iters=10**6)["plots"]
        self._lines: list[str] = []
        beyond: dict[str, int] = {}
        while page := call("events.get_task_log", task=id, navigate_earlier=False, batch_size=5000, **beyond)["events"]:
            self._lines += [event["msg"] for event in page]
            beyond = {"from_timestamp": page[-1]["timestamp"]}

    def stored(self, writer: Writer) -> Stored:
        """What there is of one of its writers."""
        return Stored(
            {
                metric: dict(zip(variants[writer.name]["x"], variants[writer.name]["y"], strict=True))
                for metric, variants in self._histogram.items()
                if writer.name in variants
            },
            [line for line in self._lines if line.startswith(f"{writer.name} ")],
            {plot["iter"]: json.loads(plot["plot_str"]) for plot in self._plots if plot["metric"] == writer.name},
        )

    def last_metrics(self, writer: Writer) -> dict[str, dict[str, float]]:
        """What its document says of one of its writers, by metric."""
        return {
            last["metric"]: {name: last[name] for name in ("value", "min_value", "max_value", "count")}
            for variants in self.document["last_metrics"].values()
            for last in variants.values()
            if last["variant"] == writer.name
        }


def new_task(server: Served, **fields: str) -> str:
    """The id of a task made now; fields: what else it has, such as its project."""
    created: str = _call(server, "tasks.create", name="a task", type="training", **fields)["id"]
    return created


def _call(server: Served, endpoint: str, **request: Any) -> dict[str, Any]:
    return server.call(endpoint, request)
