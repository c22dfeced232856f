"""The forms in which events are written to a store and read from it.

A *series* is (owner, event type, metric, variant). Scalars are columns of numbers, and logs are columns of lines.
Vectors, plots and debug images are samples: one document each. Nothing here does I/O.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]
Float64Array = npt.NDArray[np.float64]

#: The iteration under which the SDK reports single values (`Logger.report_single_value`). Histograms leave it out.
SINGLE_VALUE_ITERATION = -(2**31)

#: The ids of histories begin with it. They own events like tasks and models do, but have no document.
HISTORY = "history/"

#: Sorts behind every metric, variant and key.
LAST_NAME = "\U0010ffff"


class EventType(StrEnum):
    """The five event types of the ClearML API, by their names there. `event_types.py` has their fields.

    The place of a type is its number on disk, so a new one is added at the end.
    """

    SCALAR = "training_stats_scalar"
    VECTOR = "training_stats_vector"
    IMAGE = "training_debug_image"
    PLOT = "plot"
    LOG = "log"

    @property
    def plural(self) -> str:
        """The name of many: "scalars"."""
        return f"{self.name.lower()}s"


#: Types that are kept as one document each.
SAMPLE_TYPES = tuple(type for type in EventType if type not in (EventType.SCALAR, EventType.LOG))


class Owner(NamedTuple):
    """The task or model that events belong to, inside one company, or a history (see HISTORY)."""

    company: str
    id: str
    is_model: bool = False

    @property
    def has_document(self) -> bool:
        """Whether the owner has a document that is kept up to date with its events."""
        return not self.id.startswith(HISTORY)

    @property
    def kind(self) -> str:
        """What the owner is, in a word: "task", "model" or "history"."""
        return "model" if self.is_model else "task" if self.has_document else "history"


class MetricSelection(NamedTuple):
    """A metric, and some of its variants; () means all variants."""

    metric: str
    variants: tuple[str, ...] = ()


#: The series that a query is about. An empty selection means all.
Selection = Sequence[MetricSelection]


def selection_of(names: Iterable[tuple[str, str]]) -> list[MetricSelection]:
    """The selection of just these series, each a metric and a variant."""
    variants: dict[str, set[str]] = {}
    for metric, variant in names:
        variants.setdefault(metric, set()).add(variant)
    return [MetricSelection(metric, tuple(sorted(of_it))) for metric, of_it in sorted(variants.items())]


# --- written ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class ScalarColumns:
    """Points of one series from one worker, in the order they were sent.

    All arrays have the same length ≥ 1. `timestamps` are epoch milliseconds. A value that was absent or
    null is NaN. The same iteration twice means that the later one replaces the earlier one.
    """

    owner: Owner
    metric: str
    variant: str
    worker: str
    iters: Int64Array
    timestamps: Int64Array
    values: Float64Array
    x_axis_label: str | None = None


@dataclass(slots=True, frozen=True, eq=False)
class Scalars:
    """Points of many series as one table of columns, group by group.

    Group n is the next `lengths[n]` ≥ 1 points, of one series and worker; `owner[n]` indexes `owners`, in which each
    owner stands once. `iters`, `timestamps` and `values` are as in ScalarColumns and as long as all groups together.
    """

    owners: list[Owner]
    owner: list[int]
    metrics: list[str]
    variants: list[str]
    workers: list[str]
    labels: list[str | None]
    """The x-axis labels that were given."""
    lengths: list[int]
    iters: Int64Array
    timestamps: Int64Array
    values: Float64Array

    @classmethod
    def of(cls, groups: Iterable[ScalarColumns]) -> Self:
        """The groups as one table; raises ValueError when the columns of one differ in length, or have none."""
        groups = list(groups)
        numbers: dict[Owner, int] = {}
        for group in groups:
            numbers.setdefault(group.owner, len(numbers))
            if not 0 < len(group.iters) == len(group.timestamps) == len(group.values):
                raise ValueError("iterations, timestamps and values of a group differ in length, or there are none")
        return cls(
            list(numbers),
            [numbers[group.owner] for group in groups],
            [group.metric for group in groups],
            [group.variant for group in groups],
            [group.worker for group in groups],
            [group.x_axis_label for group in groups],
            [len(group.iters) for group in groups],
            np.concatenate([np.empty(0, np.int64), *(group.iters for group in groups)]),
            np.concatenate([np.empty(0, np.int64), *(group.timestamps for group in groups)]),
            np.concatenate([np.empty(0, np.float64), *(group.values for group in groups)]),
        )

    def __iter__(self) -> Iterator[ScalarColumns]:
        """Group by group, which is slow for many groups."""
        ends = np.cumsum([0, *self.lengths]).tolist()
        for n, (start, stop) in enumerate(pairwise(ends)):
            yield ScalarColumns(
                self.owners[self.owner[n]],
                self.metrics[n],
                self.variants[n],
                self.workers[n],
                self.iters[start:stop],
                self.timestamps[start:stop],
                self.values[start:stop],
                self.labels[n],
            )

    def __len__(self) -> int:
        """How many groups there are."""
        return len(self.lengths)


NO_SCALARS = Scalars.of(())


@dataclass(slots=True)
class LogColumns:
    """Log lines of one owner, in the order they were sent; all columns have the same length ≥ 1.

    `digest` names the request body the lines came in. It is set only when every line of that body carries
    its own timestamp: then the line at position n of the body has the identity (digest, n), and the same
    body sent again adds nothing. Without it, lines always append.
    """

    owner: Owner
    timestamps: Int64Array
    levels: list[str | None]
    """None where none was sent."""
    workers: list[str]
    messages: list[str]
    iters: list[int | None]
    metrics: list[str]
    variants: list[str]
    digest: bytes | None = None
    extras: dict[int, bytes] = field(default_factory=dict)
    """What else was sent, of the few lines with such fields, by their number: a JSON object in UTF-8."""


@dataclass(slots=True)
class Sample:
    """One vector, plot or debug image. Identity: (owner, type, metric, variant, iter, key); the last one wins.

    `document` is the whole event as JSON text in UTF-8, exactly as it is answered to readers.
    """

    owner: Owner
    type: EventType
    metric: str
    variant: str
    iter: int
    key: str
    timestamp: int
    document: bytes

    @property
    def position(self) -> SamplePosition:
        """Where a walk stands that came to the sample."""
        return SamplePosition(self.iter, self.metric, self.variant, self.key)


@dataclass(slots=True)
class EventBatch:
    """The events that one request adds. A store keeps all of them, or raises and keeps none."""

    received: int
    """Epoch milliseconds at which the server got the request. Readers see it as `@timestamp`."""
    scalars: Scalars = NO_SCALARS
    logs: list[LogColumns] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.scalars or self.logs or self.samples)


# --- read ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class ScalarStats:
    """Exact statistics of one scalar series. Each iteration counts once.

    Minimum, maximum and sum are of finite values; the first two, and their iterations, are None if there are none.
    `first` is the point with the least (timestamp, iter), and `last` the one with the greatest.

    The last two are None unless they were asked for: `deviations` is the sum of (value − mean)² of the finite values,
    `first_not_finite_iter` is the first iteration whose value is not finite, or None.
    """

    owner: Owner
    metric: str
    variant: str
    count: int
    finite_count: int
    min_iter: int
    max_iter: int
    min_timestamp: int
    max_timestamp: int
    first_value: float
    first_iter: int
    last_value: float
    last_iter: int
    min_value: float | None
    min_value_iter: int | None
    max_value: float | None
    max_value_iter: int | None
    sum: float
    deviations: float | None = None
    first_not_finite_iter: int | None = None


class BucketAxis(StrEnum):
    """What points are bucketed over: their iterations, or times in milliseconds.

    DURATION is the time since the first point of the series, the one with the least timestamp. It is 2⁶³ − 1 at most.
    """

    ITER = "iter"
    TIMESTAMP = "timestamp"
    DURATION = "duration"


class ScalarPosition(NamedTuple):
    """Where a walk over scalar points stands; the order of the fields is the sort order."""

    iter: int
    metric: str
    variant: str


@dataclass(slots=True)
class ScalarPoints:
    """Points in (iter, metric, variant) order; all columns have the same length.

    `series[n]` indexes `names`, a table of (metric, variant). `received` is epoch milliseconds.
    """

    names: list[tuple[str, str]]
    series: npt.NDArray[np.int32]
    iters: Int64Array
    timestamps: Int64Array
    values: Float64Array
    workers: list[str]
    received: Int64Array


class WorkerSpan(NamedTuple):
    """What one worker reported of one scalar series: how many points, the first and the last when (epoch ms)."""

    metric: str
    variant: str
    worker: str
    points: int
    first: int
    last: int


@dataclass(slots=True)
class WorkerMeans:
    """Means of what one worker reported of one scalar series, by equal steps of time.

    `steps` are the ascending numbers of the steps with a finite value; `counts` and `means` are of their finite values.
    """

    metric: str
    variant: str
    worker: str
    steps: Int64Array
    counts: Int64Array
    means: Float64Array


class LogPosition(NamedTuple):
    """Where a walk over log lines stands. `sequence` grows in the order lines were acknowledged."""

    timestamp: int
    sequence: int


class LogSize(NamedTuple):
    """How much a worker logged: the timestamp of its first line, and the bytes of all of them as text (`log_text`)."""

    first: int
    bytes: int


class LogLine(NamedTuple):
    """One stored log line."""

    position: LogPosition
    level: str | None
    worker: str
    message: str
    iter: int | None
    metric: str
    variant: str
    received: int
    extra: bytes | None = None
    """What else was sent, as a JSON object in UTF-8."""


class SamplePosition(NamedTuple):
    """Where a walk over samples stands; the order of the fields is the sort order."""

    iter: int
    metric: str
    variant: str
    key: str


@dataclass(slots=True, frozen=True)
class SampleSeries:
    """Statistics of one series of vectors, plots or images."""

    metric: str
    variant: str
    count: int
    min_iter: int
    max_iter: int
    max_timestamp: int


class SeriesName(NamedTuple):
    """A series of an owner, by name."""

    type: EventType
    metric: str
    variant: str


JsonObject = dict[str, Any]
