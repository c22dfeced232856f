"""Makes tasks of MLflow's runs: an experiment is a project, a key such as "val/loss" a metric and a variant.

MLflow keeps all points of a step, this server one. If all points of a metric have the same step, as when it is logged
without a step, they are numbered in their order instead.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TypeAlias

import msgspec
import numpy as np

from apiserver.transfer.importing.runs.mlflow.stores import MlflowStore, Recorded, Values, as_json
from apiserver.transfer.importing.runs.model import (
    Again,
    Artifact,
    Part,
    Points,
    Position,
    Problem,
    Run,
    Unmapped,
    names_of,
)
from apiserver.transfer.importing.runs.times import NO_TIME, UNKNOWN, believed, of_number

_STATUSES = {
    "RUNNING": "in_progress",
    "SCHEDULED": "created",
    "FINISHED": "completed",
    "FAILED": "failed",
    "KILLED": "stopped",
}
_NOTE, _NAME, _PARENT, _OWN = "mlflow.note.content", "mlflow.runName", "mlflow.parentRunId", "mlflow."
#: Most unreadable points of a series that are named; the others are counted.
_NAMED = 20
#: Most positions of a run with many series, as each position names some of the series.
_POSITIONS = 100

Pieces: TypeAlias = Iterator[Values | Problem]


class Mlflow:
    """All runs of a store; their projects are below `project`, if there is one."""

    unit = "runs"

    def __init__(self, store: MlflowStore, project: str | None, *, with_files: bool = False) -> None:
        self._store = store
        self._project = project
        self._with_files = with_files
        self._has: dict[str, bool] = {}
        """By id, whether the store has a run."""

    def total(self) -> int:
        return self._store.count()

    def runs(self) -> Iterator[MlflowRun | Problem | Unmapped]:
        for recorded in self._store.runs():
            if isinstance(recorded, Recorded):
                yield MlflowRun(
                    self._store, recorded, self._project, self._parent(recorded), with_files=self._with_files
                )
            else:
                yield recorded

    def _parent(self, found: Recorded) -> str | None:
        """The run's parent, if the store has it. It may come later."""
        parent = found.tags.get(_PARENT)
        if not parent or parent == found.id:
            return None
        if parent not in self._has:
            self._has[parent] = self._store.has(parent)
        return parent if self._has[parent] else None


class Read(msgspec.Struct):
    """How far a run has been read: the position, as JSON."""

    like: str = ""
    """The digest of the run's metrics."""
    same: dict[str, bool] = {}
    """The series whose points all have the same step, and whether they were numbered."""
    after: str | None = None
    """The last key that was read."""
    done: bool = False

    def position(self, done: int = 0) -> Position:
        return Position(msgspec.json.encode(self).decode(), done)


class MlflowRun:
    """One run."""

    def __init__(
        self,
        store: MlflowStore,
        recorded: Recorded,
        project: str | None,
        parent: str | None,
        *,
        with_files: bool = False,
    ) -> None:
        self._store = store
        self._recorded = recorded
        self._parent = parent
        self._with_files = with_files
        tags = dict(recorded.tags)
        self._start, self._end = _time(recorded.start), _time(recorded.end)
        if self._start is not None and self._end is not None:
            self._end = max(self._start, self._end)
        self.run = Run(
            f"mlflow {recorded.id}",
            f"{project}/{recorded.experiment}" if project else recorded.experiment,
            recorded.name or tags.get(_NAME) or recorded.id,
            status=_STATUSES.get(recorded.status),
            comment=tags.pop(_NOTE, ""),
            tags=[f"{key}: {value}" if value else key for key, value in tags.items() if not key.startswith(_OWN)],
            parameters={
                "params": recorded.params,
                "mlflow": {key: value for key, value in tags.items() if key.startswith(_OWN) and key != _NAME},
            },
        )
        self._date()
        if parent:
            self.run.task["parent_source"] = f"mlflow {parent}"

    def _date(self) -> None:
        self.run.started = None if self._start is None else self._start / 1000
        self.run.completed = None if self._end is None else self._end / 1000

    def parts(self, position: str | None) -> Iterator[Part]:
        """The points, key by key. Behind the last position, and so each time: what else is missing, and the files."""
        self._date()  # not that of an earlier import: the run may have gone on
        metrics = self._store.metrics(self._recorded)
        like = hashlib.blake2b(as_json([metrics, self._recorded.end]).encode(), digest_size=12).hexdigest()
        read = before = msgspec.json.decode(position or "{}", type=Read)
        if before.like != like:
            read = Read(like)
            if position:
                same = {key: was for key, was in before.same.items() if key in metrics}
                yield Again(cleared=any(self._is_numbered(key) != was for key, was in same.items()))
        if not read.done:
            yield from self._all_points(sorted(metrics), read)
        read.done, read.after = True, None
        yield read.position(done=1)
        yield from self._recorded.problems
        yield from self._missing()
        for part in self._store.artifacts(self._recorded):
            if self._with_files or isinstance(part, Artifact):
                yield part

    def _missing(self) -> Iterator[Problem | Unmapped]:
        """The problems of the run itself."""
        for name, said, taken in (("start", self._recorded.start, self._start), ("end", self._recorded.end, self._end)):
            if said is not None and taken is None:
                yield Problem(name, NO_TIME)
        if self._end is not None and self._end != _time(self._recorded.end):
            yield Problem("end", "it is before the start")
        if not self._parent and (parent := self._recorded.tags.get(_PARENT)):
            yield Unmapped("parent that is not in the store", parent)

    def _all_points(self, keys: list[str], read: Read) -> Iterator[Part]:
        each = 1 + len(keys) // _POSITIONS
        for index, key in enumerate(keys):
            if read.after is None or key > read.after:
                yield from self._points(key, read.same)
                if index % each == 0:
                    read.after = key
                    yield read.position()

    def _points(self, key: str, same: dict[str, bool]) -> Iterator[Points | Problem]:
        """The points of a series; adds it to `same` if more points may change how they are numbered."""
        numbered, pieces = self._pieces(key)
        number = odd = step = 0
        for piece in _few(pieces, key):
            if isinstance(piece, Problem):
                yield piece
                continue
            times = believed(piece.timestamps)
            odd += int((times == UNKNOWN).sum())
            times[times == UNKNOWN] = self._other_time
            count = len(piece.steps)
            step = int(piece.steps[0])
            steps = np.arange(number, number + count) if numbered else piece.steps
            yield Points(*names_of(key), steps, times, piece.values)
            number += count
        if numbered or (number == 1 and step != 0):
            same[key] = numbered
        if odd:
            yield Problem(f"metric {key}", NO_TIME, count=odd)

    @property
    def _other_time(self) -> int:
        """The time of points whose own cannot be believed."""
        return self._start or self._end or self._recorded.changed or time.time_ns() // 10**6

    def _pieces(self, key: str) -> tuple[bool, Pieces]:
        """The points of a series, and whether they are numbered. If that is open after two pieces, it is read twice."""
        pieces = self._store.points(self._recorded, key)
        some = list(islice(pieces, 2))
        if len(some) < 2 or not _is_one_step(some):
            return _is_one_step(some), chain(some, pieces)
        return _is_one_step(chain(some, pieces)), self._store.points(self._recorded, key)

    def _is_numbered(self, key: str) -> bool:
        return _is_one_step(self._store.points(self._recorded, key))


def _time(number: int | None) -> int | None:
    """A time as epoch milliseconds; None if there is none that can be believed."""
    return None if number is None else of_number(number)


def _is_one_step(pieces: Iterable[Values | Problem]) -> bool:
    """Whether there are several points, all with the same step."""
    count, step = 0, 0
    for piece in pieces:
        if isinstance(piece, Values):
            step = step if count else int(piece.steps[0])
            count += len(piece.steps)
            if (piece.steps != step).any():
                return False
    return count > 1


def _few(pieces: Pieces, key: str) -> Pieces:
    """The problems: the first ones with their names, then the number of all others."""
    count = 0
    for piece in pieces:
        count += isinstance(piece, Problem)
        if isinstance(piece, Values) or count <= _NAMED:
            yield piece
    if count > _NAMED:
        yield Problem(f"metric {key}", "it has more points that cannot be read", count=count - _NAMED)
