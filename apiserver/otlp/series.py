"""Sorts points of OpenTelemetry into scalar series of tasks.

The attribute `clearml.task.id`, of the point or else of its resource, names the task. Where a point has an attribute
`step` or `iteration` that is an integer, that is its iteration, and the metric has the instrument's name. All other
points are of machines. Their iterations are the seconds since the task was made, and their metrics begin with
`:monitor:otel:`, so that they do not move the task's last iteration. The time when the task was made never changes,
unlike that of its start: a point that is sent again is the same point.

The variant is made of the point's other attributes, and for points of machines also of the host's name:

    hw.gpu.utilization {gpu: 0} of the host n1  ->  :monitor:otel:hw.gpu.utilization, "gpu=0, host.name=n1"
    train.loss {step: 7}                        ->  train.loss, "value", iteration 7
    latency {step: 7, op: read} (a histogram)   ->  latency, "count, op=read", "mean, op=read" …
"""

from __future__ import annotations

import re
from array import array
from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import orjson

from apiserver.events.columns import MAX_ID_BYTES, MAX_NAME_BYTES, MAX_SERIES, Grouping
from apiserver.events.gathered import Gathered, SeriesKey
from apiserver.events.ingest import Ingest
from apiserver.events.lines import Stop, Stopped
from apiserver.events.monitors import OTEL
from apiserver.events.rejects import Reject, Rejects
from apiserver.otlp.points import COUNT, Attributes, Point

TASK = "clearml.task.id"
HOST = "host.name"
_STEPS = ("step", "iteration")

_DECIMAL = re.compile(r"-?[0-9]{1,18}")
#: Texts with one of these characters are quoted in variants, so that no two lists of attributes look the same.
_QUOTED = re.compile(r'[,="]|^\s*$')
#: It is asked after so many points whether to stop.
_POINTS_AT_ONCE = 1000

_NO_TASK = f"A point has no attribute '{TASK}', nor has its resource"
_LONG_TASK = f"The attribute '{TASK}' is longer than {MAX_ID_BYTES} bytes"
_NO_NAME = "A metric has no name"
_LONG_NAME = f"The name of a metric, or its attributes, are longer than {MAX_NAME_BYTES} bytes"
_MANY_SERIES = f"A request has at most {MAX_SERIES:,} series"

#: Task, metric, variant and worker of a series, and whether its points have steps.
_Key = tuple[str, str, str, str, bool]


class _Columns:
    """The points of a series. `steps` is empty if they have none."""

    __slots__ = ("nanos", "steps", "values")

    def __init__(self) -> None:
        self.steps = array("q")
        self.nanos = array("Q")
        self.values = array("d")


class Series:
    """The points of a request by their series. Those that cannot be taken are counted in `rejects`."""

    def __init__(self, points: Iterable[Point], stop: Stop) -> None:
        """Raises what reading the points raises, and Stopped when `stop` says so."""
        self.points = 0
        """How many points were sent that have a value."""
        self.rejects = Rejects()
        self._columns: dict[_Key, _Columns] = {}
        self._further: set[tuple[str, str, str]] = set()
        """Task, metric and variant of all figures of distributions but the first one."""
        for number, point in enumerate(points, start=1):
            if not number % _POINTS_AT_ONCE and stop():
                raise Stopped
            if not point.figures:
                continue
            self.points += 1
            try:
                self._add(point)
            except Reject as reject:
                self.rejects.add(reject)

    @property
    def tasks(self) -> list[str]:
        """The ids that points name, each once."""
        return list({key[0]: None for key in self._columns})

    def ingest(self, made: Mapping[str, int], *, company: str, received: int, worker: str) -> Ingest:
        """The points as events. `made`: by task, when it was made, in epoch milliseconds; of unknown tasks nothing.

        `received` stands in for a missing time, and `worker` for the name of the host.
        """
        keys: list[SeriesKey] = []
        all_iters, all_times = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        values = array("d")
        for (task, metric, variant, host, stepped), columns in self._columns.items():
            times = (np.frombuffer(columns.nanos, np.uint64) // 1_000_000).astype(np.int64)
            times[times == 0] = received
            keys.append((task, None, False, False, metric, variant, host, None))
            all_iters.append(np.frombuffer(columns.steps, np.int64) if stepped else (times - made.get(task, 0)) // 1000)
            all_times.append(times)
            values += columns.values
        lengths = [len(columns.values) for columns in self._columns.values()]
        self._columns.clear()
        gathered = Gathered(
            keys, lengths, np.concatenate(all_iters), np.concatenate(all_times), np.frombuffer(values, np.float64)
        )
        grouping = Grouping(self.rejects, company, received, worker)
        grouping.add(gathered, (), b"", bounded=True)
        return Ingest(grouping.batch, grouping.locked_allowed, self.rejects)

    def points_in(self, events: Ingest) -> int:
        """How many points are in these events. A distribution is one point, and several events."""
        scalars = events.batch.scalars
        return sum(
            length
            for number, metric, variant, length in zip(
                scalars.owner, scalars.metrics, scalars.variants, scalars.lengths, strict=True
            )
            if (scalars.owners[number].id, metric, variant) not in self._further
        )

    def _add(self, point: Point) -> None:
        task, host = _names(point)
        if len(point.figures) > MAX_SERIES:
            raise _refused(_MANY_SERIES)
        attributes = dict(point.attributes)
        attributes.pop(TASK, None)
        step = _taken_step(attributes)
        stepped = step is not None
        metric = point.metric if stepped else OTEL + point.metric
        if host and not stepped:
            attributes.setdefault(HOST, host)
        described = described_by(attributes)
        if len(described) > MAX_NAME_BYTES:
            raise _refused(_LONG_NAME)
        keys: list[_Key] = []
        for name, _ in point.figures:
            variant = ", ".join(filter(None, (name, described))) or "value"
            keys.append((task, metric, variant, host, stepped))
        series = self._columns
        if len(series) + sum(key not in series for key in keys) > MAX_SERIES:
            raise _refused(_MANY_SERIES)
        for key, (name, value) in zip(keys, point.figures, strict=True):
            columns = series.get(key)
            if columns is None:
                columns = series[key] = _Columns()
                if name and name != COUNT:
                    self._further.add(key[:3])
            if step is not None:
                columns.steps.append(step)
            columns.nanos.append(point.nanos)
            columns.values.append(value)


def _names(point: Point) -> tuple[str, str]:
    """The task that a point names, and its host. Raises Reject, also for long names: nothing is made of them."""
    if not point.metric:
        raise _refused(_NO_NAME)
    host = point.resource.get(HOST)
    host = host if isinstance(host, str) else ""
    if len(point.metric) > MAX_NAME_BYTES or len(host) > MAX_NAME_BYTES:
        raise _refused(_LONG_NAME)
    task = point.attributes.get(TASK) or point.resource.get(TASK)
    if not task or not isinstance(task, str):
        raise _refused(_NO_TASK)
    if len(task) > MAX_ID_BYTES:
        raise _refused(_LONG_TASK)
    return task, host


def _taken_step(attributes: Attributes) -> int | None:
    """Take the iteration out of the attributes. Labels of Prometheus are text, so text of digits counts, too."""
    for name in _STEPS:
        value = attributes.get(name)
        if type(value) is int or (type(value) is str and _DECIMAL.fullmatch(value)):
            return int(attributes.pop(name))
    return None


def described_by(attributes: Attributes) -> str:
    """The attributes as text, by their names in order: `gpu=0, kind="a, b"`."""
    return ", ".join(f"{_text(name)}={_text(attributes[name])}" for name in sorted(attributes))


def _text(value: Any) -> str:
    """A value of an attribute. Text with a comma or an equals sign is quoted; bytes are Base64."""
    if isinstance(value, bytes):
        value = b64encode(value).decode()
    if isinstance(value, str) and not _QUOTED.search(value):
        return value
    return orjson.dumps(value, default=_text, option=orjson.OPT_SORT_KEYS).decode()


def _refused(reason: str) -> Reject:
    return Reject(reason, malformed=False)
