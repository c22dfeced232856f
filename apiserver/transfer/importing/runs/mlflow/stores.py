"""The interface of the three kinds of MLflow's stores: experiments with runs, whose metrics are read key by key."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import numpy as np

from apiserver.common.protobuf_wire import Malformed
from apiserver.events.model import Float64Array, Int64Array
from apiserver.transfer.importing.runs.model import Artifact, Problem, Unmapped

#: MLflow's database and server answer the largest number for infinity.
_LARGEST = float(np.finfo(np.float64).max)


#: A number, or its text.
Number: TypeAlias = int | float | str | bytes
#: Timestamp, value and step of a point.
Row: TypeAlias = tuple[Number, Number, Number]


@dataclass(slots=True)
class Recorded:
    """The fields of a run in a store. Times are epoch milliseconds."""

    id: str
    experiment: str
    name: str = ""
    status: str = ""
    """As MLflow calls it: "" if it is not said."""
    start: int | None = None
    end: int | None = None
    artifacts: str = ""
    """Where they are, as the store says."""
    place: str = ""
    """The run's folder in a store that is a folder."""
    changed: int | None = None
    """When the file that says this was last changed."""
    params: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    """The parts of the run that could not be read."""


@dataclass(slots=True)
class Values:
    """Some points of one metric, in their order: columns of equal length."""

    timestamps: Int64Array
    values: Float64Array
    steps: Int64Array

    @classmethod
    def of(cls, timestamps: Iterable[Number], values: Iterable[Number], steps: Iterable[Number]) -> Values:
        """The columns of numbers. Raises Malformed for what is no 64-bit number."""
        try:
            floats = np.array(list(map(float, values)), np.float64)
            times, numbers = (np.array(list(map(int, column)), np.int64) for column in (timestamps, steps))
        except (ValueError, OverflowError, TypeError) as error:
            raise Malformed(f"not a number: {error}") from None
        return cls(times, floats, numbers)

    def with_infinities(self) -> Values:
        """The values, with an infinity in place of each largest number."""
        floats = np.where(np.abs(self.values) == _LARGEST, np.copysign(math.inf, self.values), self.values)
        return Values(self.timestamps, floats, self.steps)


def values_of(rows: Sequence[Row], place: Callable[[int], str]) -> Iterator[Values | Problem]:
    """The points of rows. A row that is none costs only itself, and is named by the `place` of its index."""
    if not rows:
        return
    try:
        yield Values.of(*zip(*rows, strict=True))
        return
    except Malformed:
        pass
    good: list[Row] = []
    for index, row in enumerate(rows):
        try:
            Values.of(*zip(row, strict=True))
        except Malformed:
            yield Problem(place(index), "it is no point")
        else:
            good.append(row)
    if good:
        yield Values.of(*zip(*good, strict=True))


def kept_values(key: str, rows: Sequence[Row]) -> Iterator[Values | Problem]:
    """The points of rows of a database, which keeps the largest number for infinity."""
    for piece in values_of(rows, lambda index: f"metric {key}, step {rows[index][2]!r}"):
        yield piece.with_infinities() if isinstance(piece, Values) else piece


class MlflowStore(Protocol):
    """A store of MLflow. Its methods raise ImportFailed to give up, and OSError or ValueError for one run."""

    def count(self) -> int:
        """About how many runs there are; 0 if that is not known."""

    def runs(self) -> Iterator[Recorded | Problem | Unmapped]:
        """All runs of all experiments, without deleted ones."""

    def has(self, id: str) -> bool:
        """Whether `runs` gives the run with an id."""

    def metrics(self, run: Recorded) -> dict[str, object]:
        """The keys of a run's metrics, each with JSON that changes when points are added."""

    def points(self, run: Recorded, key: str) -> Iterator[Values | Problem]:
        """The points of a metric, in the order in which they were logged, in pieces."""

    def artifacts(self, run: Recorded) -> Iterator[Artifact | Problem | Unmapped]:
        """The files of a run."""


def as_json(value: object) -> str:
    """JSON in one form, to be compared."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
