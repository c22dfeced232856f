"""Makes runs of one table.

Each row is a point (columns metric, value, perhaps task, variant, iter, timestamp), or a step. If each row is a step,
there is a column for each metric. A table with a column `value` beside step and time, as TensorBoard writes it, has the
points of one metric. The rows of several tasks may alternate. So the table is read once, and the points of each task
are put into a temporary file of their own.

The step of a point is its iteration, but for two cases in which points would be lost:

    a series has decimal steps      its points are numbered in their order, and its steps are a series `x: epoch`
    the steps begin anew with       the rows of the task are numbered, and both columns are series
    each epoch
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from apiserver.events.model import Float64Array, Int64Array
from apiserver.transfer.importing.report import ImportFailed
from apiserver.transfer.importing.runs import times
from apiserver.transfer.importing.runs.model import (
    Again,
    Note,
    Part,
    Points,
    Position,
    Problem,
    Run,
    Unmapped,
    clamped,
    numbered_x,
)
from apiserver.transfer.importing.runs.tables.batches import TENSORBOARD, name_of, rows
from apiserver.transfer.importing.runs.tables.broken import Broken
from apiserver.transfer.importing.runs.tables.sorting import POINT, Sorted, Sorting, checksum

_READ = 262_144


class TableFile:
    """The tasks of one table. Its temporary files are deleted with it."""

    unit = "bytes"

    def __init__(self, path: Path, project: str | None, metric: str | None = None) -> None:
        self._path = path
        self._metric = metric
        self._project = project or name_of(path)
        if not path.is_file():
            is_folder = path.is_dir()
            raise ImportFailed(f"'{path}' is a folder: name one file" if is_folder else f"there is no file '{path}'")
        self._folder = Path(tempfile.mkdtemp(prefix="apiserver-import-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def total(self) -> int:
        return 0

    def runs(self) -> Iterator[TableRun | Problem | Unmapped | Note]:
        name = name_of(self._path)
        saved = TENSORBOARD.fullmatch(name)
        task, metric = saved.groups() if saved else (name, name)
        broken = Broken()
        sorting = Sorting(self._folder, task, self._metric or metric, broken)
        try:
            for batch in rows(self._path, broken):
                sorting.add(batch)
        except (OSError, ValueError) as error:
            yield Problem(self._path.name, str(error))
        yield from self._said(broken, sorting)
        changed = times.of_file(self._path)
        for task, sorted_rows in sorting.tasks.items():
            if sorted_rows.path.exists():
                if sorted_rows.begins_anew:
                    yield Note(f"{task}: '{sorted_rows.step}' begins anew with each epoch, so the rows are numbered")
                source = f"table {self._project}: {task}"
                if task == name and not saved:  # only the file's name says which run it is
                    place = hashlib.blake2b(os.fsencode(self._path.resolve()), digest_size=6).hexdigest()
                    source = f"table {place} {self._project}: {task}"
                yield TableRun(Run(source, self._project, task), sorted_rows, sorting, changed)

    def _said(self, broken: Broken, sorting: Sorting) -> Iterator[Problem | Unmapped | Note]:
        for reason, count in broken.reasons():
            yield Problem(self._path.name, reason, count=count)
        for name in sorted(sorting.texts - sorting.numbers):
            yield Unmapped("column without numbers", name)
        for name in sorted(sorting.others):
            yield Unmapped("column beside those of points", name)
        for text in broken.said():
            yield Note(f"{self._path.name}: {text}")


class TableRun:
    """The points of one task. A point without a time gets `changed`, epoch milliseconds."""

    def __init__(self, run: Run, sorted_rows: Sorted, sorting: Sorting, changed: int) -> None:
        self.run = run
        self._sorted = sorted_rows
        self._series = list(sorting.series)
        self._hidden = sorting.hidden
        self._time = changed if sorted_rows.first_time == times.UNKNOWN else sorted_rows.first_time
        self._has_rows = sorted_rows.step is None or sorted_rows.begins_anew
        """Whether the rows are numbered."""
        self._decimal = set() if self._has_rows else sorted_rows.decimal

    def parts(self, position: str | None) -> Iterator[Part]:
        """The points.

        A position says what they are, what iterations are, how many bytes of them were given, and how many rows they
        are of, with the checksum of these.
        """
        sorted_rows, x = self._sorted, self._x()
        digest = sorted_rows.digest.hexdigest()
        before = (position or "").split()
        offset = int(before[2]) if len(before) == 5 and before[:2] == [digest, x] else 0
        if position and not offset:
            cleared = before[1:2] != [x] or len(before) != 5
            yield Again(cleared)
            if not cleared and self._checksum(int(before[3])) != int(before[4]):
                yield Note("it begins otherwise than before: points that it no longer has stay until the task is reset")
        given: Counter[int] = Counter()
        for end, points in self._pieces():
            if end > offset:
                yield from self._points(points, given)
                yield Position(f"{digest} {x} {end} {sorted_rows.rows} {sorted_rows.checksum}")
            given.update(points["series"].tolist() if self._decimal else ())

    def _x(self) -> str:
        """A digest of how iterations are made: if it changes, points that were given before are wrong."""
        named = [self._has_rows, *sorted(self._series[number] for number in self._decimal)]
        return hashlib.blake2b(repr(named).encode(), digest_size=6).hexdigest()

    def _checksum(self, rows: int) -> int:
        """The checksum of the first rows, as many as `rows`."""
        return sum(checksum(points[points["row"] < rows].tobytes()) for _, points in self._pieces()) % 2**64

    def _pieces(self) -> Iterator[tuple[int, Any]]:
        """Some points at a time, and where they end in the file."""
        with self._sorted.path.open("rb") as file:
            while data := file.read(_READ * POINT.itemsize):
                yield file.tell(), np.frombuffer(data, POINT)

    def _points(self, points: Any, given: Counter[int]) -> Iterator[Part]:
        order = np.argsort(points["series"], kind="stable")
        for chosen in np.split(order, np.flatnonzero(np.diff(points["series"][order])) + 1):
            of_series = points[chosen]
            number = int(of_series["series"][0])
            if number not in self._hidden or self._sorted.begins_anew:
                yield from self._of_series(number, of_series, given[number])

    def _of_series(self, number: int, points: Any, given: int) -> Iterator[Points]:
        iters: Int64Array = points["row" if self._has_rows else "step"].copy()
        if number in self._decimal:
            iters = np.arange(given, given + len(points))
        moments = clamped(np.where(points["time"] == times.UNKNOWN, self._time, points["time"]))
        self.run.seen(float(moments.min()) / 1000, float(moments.max()) / 1000)
        names = self._series[number]
        values: Float64Array = points["value"].copy()
        yield Points(*names, iters, moments, values)
        if number in self._decimal:
            yield numbered_x(str(self._sorted.step), names, iters, moments, points["exact"].copy())
