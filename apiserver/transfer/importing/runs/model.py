"""The values that a source gives: runs, and the parts of a run in their order. Nothing here does I/O.

Times of runs are epoch seconds, timestamps of events are epoch milliseconds. A source that fails at a part gives a
`Problem` or `Unmapped` instead, and goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, BinaryIO, Protocol, TypeAlias, runtime_checkable

import numpy as np

from apiserver.events.event_types import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from apiserver.events.model import Float64Array, Int64Array, JsonObject
from apiserver.transfer.importing.missing import Reason

#: The exceptions that reading a broken file may raise.
BROKEN = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, RecursionError)


@dataclass(slots=True)
class Run:
    """The fields of the task that a run becomes. A source may fill them in while the parts are taken."""

    source: str
    """Identifies the run, wherever it is imported from: the same text means the same task."""
    project: str
    name: str
    status: str | None = None
    """created, in_progress, stopped, closed, failed, completed or published; None if the source does not say."""
    guess: str = "completed"
    """The status of the run if the source never says it."""
    tags: list[str] = field(default_factory=list)
    system_tags: list[str] | None = None
    """Such as "archived"; None if the source has none of them."""
    comment: str = ""
    started: float | None = None
    completed: float | None = None
    parameters: dict[str, dict[str, str]] = field(default_factory=dict)
    """By section and name."""
    configuration: dict[str, str] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    """Kept as runtime properties."""
    task: JsonObject = field(default_factory=dict)
    """Fields of the task, as `tasks.import_run` takes them; they go before the other fields of the run."""

    def seen(self, first: float, last: float) -> None:
        """Widen the time of the run to these epoch seconds."""
        if math.isfinite(first) and math.isfinite(last) and first > 0:
            self.started = first if self.started is None else min(self.started, first)
            self.completed = last if self.completed is None else max(self.completed, last)


@dataclass(slots=True)
class Points:
    """Points of one series: columns of equal length."""

    metric: str
    variant: str
    iters: Int64Array
    timestamps: Int64Array
    values: Float64Array
    more: JsonObject = field(default_factory=dict)
    """Further fields of each of its events."""


@dataclass(slots=True)
class Line:
    """A line of the log."""

    timestamp: int
    text: str
    level: str = ""
    worker: str = ""
    metric: str = ""
    variant: str = ""
    iter: int | None = None
    more: JsonObject = field(default_factory=dict)
    """Further fields of its event."""


@dataclass(slots=True)
class Figure:
    """A plot: a figure of Plotly."""

    metric: str
    variant: str
    iter: int
    timestamp: int
    figure: JsonObject


@dataclass(slots=True)
class Image:
    """An image, or another medium that a browser can show; `suffix`: the end of its file's name, ".png"."""

    metric: str
    variant: str
    iter: int
    timestamp: int
    suffix: str
    content: File
    more: JsonObject = field(default_factory=dict)
    """Further fields of its event."""


@dataclass(slots=True)
class Artifact:
    """A file of the run."""

    name: str
    content: File | None
    """None: it stays where it is."""
    file_name: str = ""
    about: JsonObject = field(default_factory=dict)
    """Fields of the artifact, as `tasks.add_or_update_artifacts` takes them."""


@dataclass(slots=True)
class Model:
    """A model that the run started from or made."""

    source: str
    """Identifies the model, as a run's `source` does the run."""
    kind: str
    """input or output."""
    name: str
    """The name of the model in the run."""
    project: str | None
    about: JsonObject
    """As `models.create` takes it."""
    content: File | None
    """None: its file stays where it is."""
    file_name: str = ""


@dataclass(slots=True)
class File:
    """A file's content, which is opened when it is needed."""

    size: int
    open: Callable[[], BinaryIO]


@dataclass(slots=True)
class Other:
    """An event in the form in which it is sent, without its task."""

    event: JsonObject


@dataclass(slots=True)
class Problem:
    """Something that cannot be given: what it is of, and why. `count` things of the same place may be told as one."""

    of: str
    cause: str
    reason: Reason = Reason.BROKEN
    count: int = 1
    may_come: bool = False
    """It may only not be written yet: no problem as long as the source is followed."""


@dataclass(slots=True)
class Unmapped:
    """Something that has no place here, such as a graph or an audio clip."""

    kind: str
    name: str
    on_purpose: bool = False
    """Its owner has put it away there, as a deleted run: it is named, but not missing."""


@dataclass(slots=True)
class Note:
    """Something that is left out, or changed, on purpose."""

    text: str


@dataclass(slots=True)
class Again:
    """The first part: all parts come again in spite of the position, as the source has changed before it.

    With `cleared`, what was given before is wrong: the events that the task has are deleted first.
    """

    cleared: bool = False


@dataclass(slots=True)
class Position:
    """All parts so far need not be given again if reading goes on from `text`; `done` more units are done.

    What was a problem up to here is not said again either.
    """

    text: str
    done: int = 0


Part: TypeAlias = (
    Points | Line | Figure | Image | Artifact | Model | Other | Problem | Unmapped | Note | Again | Position
)


class RunSource(Protocol):
    """One run that can be read."""

    @property
    def run(self) -> Run:
        """The fields of the run that are known so far."""

    def parts(self, position: str | None) -> Iterator[Part]:
        """The parts behind a position (None: all of them), with positions in between."""


class Source(Protocol):
    """A place with runs. Its methods raise ImportFailed to give up."""

    unit: str
    """The unit of `total`: "bytes", "runs"."""

    def total(self) -> int:
        """How much there is to read; 0 if that is not known."""

    def runs(self) -> Iterator[RunSource | Problem | Unmapped | Note]:
        """All runs, and what cannot be one."""


@runtime_checkable
class HasProjects(Protocol):
    """A source that says something of projects themselves."""

    def projects(self) -> list[JsonObject]:
        """As `projects.create` takes them."""


def names_of(tag: str) -> tuple[str, str]:
    """The metric and variant of a tag, so that no two tags have the same.

    "train/loss" is ("train", "loss"). A tag that cannot be cut at its last slash is both: ("loss", "loss").
    """
    metric, _, variant = tag.rpartition("/")
    return (metric, variant) if metric and variant and metric != variant else (tag, tag)


def names_of_x(x: str, series: str) -> tuple[str, str]:
    """The metric and the variant that keep the exact x of a series whose points are numbered."""
    return f"x: {x}", series


def numbered_x(
    x: str, names: tuple[str, str], iters: Int64Array, timestamps: Int64Array, exact: Float64Array
) -> Points:
    """The exact x of points that were numbered, as it has decimals: a series beside theirs.

    For example, that of train/loss by epoch is the metric "x: epoch" with the variant "train/loss".
    """
    metric, variant = names
    series = metric if metric == variant else f"{metric}/{variant}"
    return Points(*names_of_x(x, series), iters, timestamps, exact)


def milliseconds(seconds: float) -> int:
    """Epoch seconds as a timestamp; what has no date gets the nearest one that has."""
    if not math.isfinite(seconds):
        return 0
    return max(EARLIEST_TIMESTAMP, min(LATEST_TIMESTAMP, round(seconds * 1000)))


def clamped(timestamps: Int64Array) -> Int64Array:
    """The timestamps; one without a date becomes the nearest one with a date."""
    return np.clip(timestamps, EARLIEST_TIMESTAMP, LATEST_TIMESTAMP)


def bars(title: str, edges: list[float], counts: list[float]) -> JsonObject:
    """A figure of a histogram, as the ClearML SDK makes it: a bar for each bin, as wide as the bin.

    `edges` are one more than `counts`.
    """
    widths = [right - left for left, right in pairwise(edges)]
    centers = [left + width / 2 for left, width in zip(edges, widths, strict=False)]
    trace: dict[str, Any] = {"type": "bar", "name": title, "x": centers, "y": counts, "width": widths}
    layout = {"title": title, "xaxis": {"title": ""}, "yaxis": {"title": ""}, "barmode": "group", "bargap": 0}
    return {"data": [trace], "layout": layout}
