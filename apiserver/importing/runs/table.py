"""Makes runs of one table.

Each row is a point (columns metric, value, perhaps task, variant, iter, timestamp), or a step. If each row is a step,
there is a column for each metric. A table with a column `value` beside step and time, as TensorBoard writes it, has the
points of one metric. The rows of several tasks may alternate. So the table is read once, and the points of each task
are put into a temporary file of their own.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from apiserver.events.model import Float64Array, Int64Array
from apiserver.importing.report import ImportFailed
from apiserver.importing.runs.model import Again, Part, Points, Position, Problem, Run, Unmapped, clamped, names_of
from apiserver.importing.runs.tables import Broken, Rows, rows

STEPS = ("iter", "iteration", "step", "_step", "global_step", "epoch")
_TIMES = ("timestamp", "_timestamp", "wall_time", "time")
_TASKS = ("task", "run")
#: A task's name of a table without one.
_POINT = np.dtype([("series", "<i4"), ("iter", "<i8"), ("timestamp", "<i8"), ("value", "<f8")])
_READ = 262_144
#: Times before this many seconds are epoch seconds, others milliseconds: the year 5138, or March 1973.
_SECONDS = 1e11
#: The name of a file that TensorBoard's page writes.
_TENSORBOARD = re.compile(r"run-(.+?)-tag-(.+)")
_INFINITIES = ("inf", "infinity")


class TableFile:
    """The tasks of one table. Its temporary files are deleted with it."""

    unit = "bytes"

    def __init__(self, path: Path, project: str | None, metric: str | None = None) -> None:
        self._path = path
        self._metric = metric
        self._project = project or path.stem
        if not path.is_file():
            raise ImportFailed(f"there is no file '{path}'")
        self._folder = Path(tempfile.mkdtemp(prefix="apiserver-import-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)

    def total(self) -> int:
        return 0

    def runs(self) -> Iterator[TableRun | Problem | Unmapped]:
        saved = _TENSORBOARD.fullmatch(self._path.stem)
        task, metric = saved.groups() if saved else (self._path.stem, self._path.stem)
        broken = Broken()
        sorting = _Sorting(self._folder, task, self._metric or metric, self._path.stat().st_mtime_ns // 10**6, broken)
        try:
            for some in rows(self._path, broken):
                sorting.add(some)
        except (OSError, ValueError) as error:
            yield Problem(self._path.name, str(error))
        for reason in broken.reasons():
            yield Problem(self._path.name, reason)
        for name in sorting.texts - sorting.numbers:
            yield Unmapped("column without numbers", name)
        for task, (path, digest) in sorting.files.items():
            source = f"table {self._project}: {task}"
            yield TableRun(Run(source, self._project, task), path, digest.hexdigest(), list(sorting.series))


class TableRun:
    """The points of one task."""

    def __init__(self, run: Run, path: Path, digest: str, series: Sequence[tuple[str, str]]) -> None:
        self.run = run
        self._path = path
        self._digest = digest
        self._series = series

    def parts(self, position: str | None) -> Iterator[Part]:
        """The points; a position is how many bytes of them there were, and the digest of all."""
        digest, _, at = (position or "").partition(" ")
        offset = int(at) if digest == self._digest else 0
        if position and digest != self._digest:
            yield Again()
        with self._path.open("rb") as file:
            file.seek(offset)
            while data := file.read(_READ * _POINT.itemsize):
                rows = np.frombuffer(data, _POINT)
                times = rows["timestamp"]
                self.run.seen(float(times.min()) / 1000, float(times.max()) / 1000)
                order = np.argsort(rows["series"], kind="stable")
                ends = np.flatnonzero(np.diff(rows["series"][order])) + 1
                for chosen in np.split(order, ends):
                    some = rows[chosen]
                    names = self._series[int(some["series"][0])]
                    values: Float64Array = some["value"].copy()
                    yield Points(*names, some["iter"].copy(), clamped(some["timestamp"]), values)
                offset += len(data)
                yield Position(f"{self._digest} {offset}")


class _Sorting:
    """Puts the points of each task into a file of its own."""

    def __init__(self, folder: Path, task: str, metric: str, time: int, broken: Broken) -> None:
        """A table may lack tasks, metrics and times; these stand for them."""
        self._folder = folder
        self._task = task
        self._metric = metric
        self._time = time
        self._broken = broken
        self._numbers: dict[tuple[str, str], int] = {}
        self._rows = 0
        self.numbers: set[str] = set()
        """The columns that have numbers."""
        self.texts: set[str] = set()
        """The columns that have something else."""
        self.files: dict[str, tuple[Path, Any]] = {}
        """By task, the file, and the digest of what is in it."""

    @property
    def series(self) -> dict[tuple[str, str], int]:
        """The number of each series, a metric and a variant."""
        return self._numbers

    def add(self, some: Rows) -> None:
        """Add some rows; what is no point is counted as broken."""
        first, count = self._rows, len(some.numbers)
        if not count:
            return
        self._rows += count
        known = {_known(name): name for name in reversed(list(some.columns))}
        step, time, task = (
            next((known[one] for one in names if one in known), None) for names in (STEPS, _TIMES, _TASKS)
        )
        tasks = [None] * count if task is None else some.columns[task]
        names = np.array([self._task if one is None else str(one) for one in tasks], object)
        times, wrong = _times(None if time is None else some.columns[time], count, self._time)
        self._count("a time that is none", some, wrong)
        iters = np.arange(first, first + count)
        if step is not None:
            iters, wrong_steps = _integers(some.columns[step])
            self._count("no step that is a whole number", some, wrong_steps)
            wrong |= wrong_steps
        others = {name: column for name, column in some.columns.items() if name not in (step, time, task)}
        if "metric" in known and "value" in known:
            variants = some.columns[known["variant"]] if "variant" in known else [None] * count
            self._add_points(some, others[known["metric"]], variants, known["value"], (names, iters, times, ~wrong))
        elif [_known(name) for name in others] == ["value"]:
            self._add_points(
                some, [self._metric] * count, [None] * count, known["value"], (names, iters, times, ~wrong)
            )
        else:
            for name, column in others.items():
                self._add_column(some, name, column, (names, iters, times, ~wrong))

    def _add_points(
        self, some: Rows, metrics: Sequence[Any], variants: Sequence[Any], name: str, rest: tuple[Any, ...]
    ) -> None:
        names, iters, times, kept = rest
        unnamed = np.array([one is None or one == "" for one in metrics])
        self._count("no metric", some, unnamed)
        series = np.array(
            [
                -1 if metric is None or metric == "" else self._number(metric, variant)
                for metric, variant in zip(metrics, variants, strict=True)
            ],
            np.int32,
        )
        values, is_point = _floats(some.columns[name])
        self._count("no value that is a number", some, ~is_point, name)
        self._put(names, series, iters, times, values, kept & is_point & ~unnamed)

    def _add_column(self, some: Rows, name: str, column: Sequence[Any], rest: tuple[Any, ...]) -> None:
        names, iters, times, kept = rest
        values, is_point = _floats(column)
        is_text = ~is_point & np.array([one is not None for one in column])
        if is_text.any():
            self.texts.add(name)
        if is_point.any():
            self.numbers.add(name)
        if name in self.numbers:
            self._count("no value that is a number", some, is_text, name)
            series = np.full(len(values), self._number(name, None), np.int32)
            self._put(names, series, iters, times, values, kept & is_point)

    def _number(self, metric: Any, variant: Any) -> int:
        named = names_of(str(metric)) if variant is None else (str(metric), str(variant))
        return self._numbers.setdefault(named, len(self._numbers))

    def _count(self, kind: str, some: Rows, wrong: Any, column: str = "") -> None:
        found = np.flatnonzero(wrong).tolist()
        if found:
            places = some.places(found)
            self._broken.add(kind, [f"{one} ('{column}')" if column else one for one in places], len(found))

    def _put(
        self, names: Any, series: Any, iters: Int64Array, times: Int64Array, values: Float64Array, kept: Any
    ) -> None:
        for task in dict.fromkeys(names.tolist()):
            chosen = kept & (names == task)
            if not chosen.any():
                continue
            rows = np.empty(int(chosen.sum()), _POINT)
            for field, column in zip(_POINT.names or (), (series, iters, times, values), strict=True):
                rows[field] = column[chosen]
            if task not in self.files:
                self.files[task] = (self._folder / str(len(self.files)), hashlib.blake2b(digest_size=12))
            path, digest = self.files[task]
            digest.update(rows.tobytes())
            with path.open("ab") as file:
                file.write(rows.tobytes())


def _known(name: str) -> str:
    """A column's name as it is looked for: "Wall time" as "wall_time"."""
    return name.strip().lower().replace(" ", "_")


def _floats(column: Sequence[Any]) -> tuple[Float64Array, np.typing.NDArray[np.bool_]]:
    """The numbers of a column, and which rows have one."""
    if isinstance(column, np.ndarray):
        return column.astype(np.float64), np.ones(len(column), bool)
    try:
        found = np.array(list(map(float, column)), np.float64)
        is_number = np.ones(len(column), bool)
        for row in np.flatnonzero(np.isinf(found)).tolist():
            is_number[row] = _float(column[row]) is not None
        return found, is_number
    except (ValueError, TypeError, OverflowError):
        some = [_float(one) for one in column]
        return np.array([0.0 if one is None else one for one in some]), np.array([one is not None for one in some])


def _float(value: Any) -> float | None:
    """A number; a text such as 1e400 is none, as only the word means infinity."""
    try:
        number = float(value)
    except (ValueError, TypeError, OverflowError):
        return None
    is_too_large = np.isinf(number) and isinstance(value, str) and value.strip().lstrip("+-").lower() not in _INFINITIES
    return None if is_too_large else number


def _integers(column: Sequence[Any]) -> tuple[Int64Array, np.typing.NDArray[np.bool_]]:
    """Whole numbers, and which rows have none. A float such as 3.0 counts as one."""
    if isinstance(column, np.ndarray) and column.dtype.kind == "i":
        return column.astype(np.int64), np.zeros(len(column), bool)
    if set(map(type, column)) <= {str, int}:
        try:
            return np.array(list(map(int, column)), np.int64), np.zeros(len(column), bool)
        except (ValueError, OverflowError):
            pass
    found = [_integer(one) for one in column]
    return np.array([one or 0 for one in found], np.int64), np.array([one is None for one in found])


def _integer(value: Any) -> int | None:
    try:
        number = int(value)
        is_whole = isinstance(value, str) or number == value
    except (ValueError, TypeError, OverflowError):
        try:
            is_whole = (number := int(float(value))) == float(value)
        except (ValueError, TypeError, OverflowError):
            return None
    return number if is_whole and -(2**63) <= number < 2**63 else None


def _times(column: Sequence[Any] | None, count: int, missing: int) -> tuple[Int64Array, np.typing.NDArray[np.bool_]]:
    """Epoch milliseconds of epoch seconds or milliseconds, or of ISO-8601 texts, and which rows have a wrong one.

    Rows without a time get `missing`.
    """
    if column is None:
        return np.full(count, missing, np.int64), np.zeros(count, bool)
    values, are_numbers = _floats(column)
    seconds = np.where(np.abs(values) < _SECONDS, values * 1000, values)
    found = np.nan_to_num(np.clip(seconds, -6.3e13, 2.6e14)).round().astype(np.int64)
    found[np.isnan(values)] = missing
    wrong = ~are_numbers
    for row in np.flatnonzero(wrong).tolist():
        time = missing if column[row] is None else _iso(column[row])
        if time is not None:
            found[row], wrong[row] = time, False
    return found, wrong


def _iso(text: Any) -> int | None:
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
