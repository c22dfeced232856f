"""Sorts the rows of a table into the points of each task, in a temporary file of its own.

The first rows say which columns are the step, the time and the task, and whether a row is a point or has one for each
column. What an iteration is, is known only at the end: so each point is kept with its row, its step and its exact step.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from apiserver.events.model import Float64Array, Int64Array
from apiserver.transfer.importing.runs import times
from apiserver.transfer.importing.runs.model import names_of, names_of_x
from apiserver.transfer.importing.runs.tables import cells
from apiserver.transfer.importing.runs.tables.batches import Batch, Rows
from apiserver.transfer.importing.runs.tables.broken import Broken
from apiserver.transfer.importing.runs.tables.cells import Bools
from apiserver.transfer.importing.runs.tables.charts import Chart, chart_of

EPOCH = "epoch"
STEPS = ("iter", "iteration", "step", "_step", "global_step", EPOCH)
_TIMES = ("timestamp", "_timestamp", "wall_time", "time")
_TASKS = ("task", "run", "run_name")
#: A point: its series, its row in the task, its step if that is whole, the exact step, its time and value.
POINT = np.dtype(
    [("series", "<i4"), ("row", "<i8"), ("step", "<i8"), ("exact", "<f8"), ("time", "<i8"), ("value", "<f8")]
)


#: Odd numbers by which the words of a point are multiplied.
_FACTORS = np.random.default_rng(42).integers(0, 2**63, POINT.itemsize // 4, np.uint64) * np.uint64(2) + np.uint64(1)


def checksum(data: bytes) -> int:
    """A number of 64 bits, the sum over all points: their order does not matter."""
    words = np.frombuffer(data, np.uint32).reshape(-1, len(_FACTORS)).astype(np.uint64)
    mixed = words @ _FACTORS
    mixed ^= mixed >> np.uint64(29)
    mixed *= _FACTORS[0]
    mixed ^= mixed >> np.uint64(32)
    return int(mixed.sum())


@dataclass(slots=True)
class Columns:
    """The columns of a table by their use, which their names tell."""

    step: str | None = None
    epoch: str | None = None
    """Beside a step."""
    task: str | None = None
    value: str | None = None
    """The column of values where each row is a point; else None. Metric and variant have columns, too, or are given."""
    metric: str | None = None
    variant: str | None = None
    times: tuple[str, ...] = ()
    """The columns that are named like a time, and whose cells did not turn out to be no times."""
    time: str | None = None
    """The one of them that has the times, once that is known."""

    @classmethod
    def of(cls, names: Sequence[str]) -> Columns:
        """The columns whose names say what they are for."""
        by_name = {_known(name): name for name in reversed(names)}
        step, task = (
            next((by_name[title] for title in titles if title in by_name), None) for titles in (STEPS, _TASKS)
        )
        epoch = by_name.get(EPOCH)
        columns = cls(step, None if step == epoch else epoch, task, times=_of_times(names))
        others = [name for name in names if name not in (step, task, *columns.times)]
        if "metric" in by_name and "value" in by_name:
            columns.value, columns.metric, columns.variant = by_name["value"], by_name["metric"], by_name.get("variant")
        elif [_known(name) for name in others] == ["value"]:
            columns.value = others[0]
        return columns

    @classmethod
    def of_chart(cls, chart: Chart, run: str) -> Columns:
        """The columns of one run of a chart."""
        is_step = _known(chart.x) in STEPS
        is_time = bool(_of_times([chart.x]))
        step = chart.x if is_step or not (is_time or run in chart.steps) else chart.steps.get(run)
        return cls(step, times=(chart.x,) if is_time else ())


@dataclass(slots=True)
class Sorted:
    """The points of one task."""

    path: Path
    digest: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=12))
    """The digest of the file's content."""
    checksum: int = 0
    """The checksum of the file's points."""
    rows: int = 0
    step: str | None = None
    """The column that has the steps."""
    decimal: set[int] = field(default_factory=set)
    """The series with steps that are no whole numbers."""
    first_time: int = times.UNKNOWN
    last_time: int = times.UNKNOWN
    _last: dict[int, tuple[float, float]] = field(default_factory=dict)
    """By series, the last epoch and step."""
    _goes_back: bool = False
    _stays: bool = False
    _grows: bool = False

    @property
    def begins_anew(self) -> bool:
        """Whether the steps of a series go back, or never grow, while its epochs grow."""
        return self._goes_back or (self._stays and not self._grows)

    def see_epochs(self, series: Any, epochs: Float64Array, steps: Float64Array) -> None:
        """Take the steps of further points, in the order of their rows."""
        before = [one for one in np.unique(series).tolist() if one in self._last]
        last = np.array([self._last[one] for one in before]).reshape(-1, 2)
        series = np.concatenate((np.array(before, np.int32), series))
        epochs, steps = np.concatenate((last[:, 0], epochs)), np.concatenate((last[:, 1], steps))
        order = np.argsort(series, kind="stable")
        series, epochs, steps = series[order], epochs[order], steps[order]
        follows, change = series[1:] == series[:-1], np.diff(steps)
        in_later_epoch = follows & (np.diff(epochs) > 0)
        self._goes_back |= bool((in_later_epoch & (change < 0)).any())
        self._stays |= bool((in_later_epoch & (change == 0)).any())
        self._grows |= bool((follows & (change > 0)).any())
        for row in np.flatnonzero(np.append(~follows, True)).tolist():
            self._last[int(series[row])] = (float(epochs[row]), float(steps[row]))


@dataclass(slots=True)
class _Facts:
    """Rows, with the task, step, time and epoch of each."""

    rows: Rows
    columns: Columns
    tasks: list[tuple[Sorted, Int64Array]]
    """The rows of each task."""
    numbers: Int64Array
    """The number of each row among the rows of its task."""
    steps: cells.Steps
    times: Int64Array
    epochs: Float64Array | None


class Sorting:
    """Puts the points of each task into a file of its own."""

    def __init__(self, folder: Path, task: str, metric: str, broken: Broken) -> None:
        """A table may lack tasks and metrics; these stand for them."""
        self._folder = folder
        self._task = task
        self._metric = metric
        self._broken = broken
        self._columns: dict[str | None, Columns] = {}
        """By run of a chart; of all other tables, the columns of None."""
        self._chart: tuple[list[str], Chart | None] | None = None
        self.tasks: dict[str, Sorted] = {}
        """By name."""
        self.series: dict[tuple[str, str], int] = {}
        """The number of each series, a metric and a variant."""
        self.hidden: set[int] = set()
        """The series of steps and epochs, which are there only for tasks whose steps begin anew."""
        self.numbers: set[str] = set()
        """The columns that have numbers."""
        self.texts: set[str] = set()
        """The columns that have something else."""
        self.others: set[str] = set()
        """The columns beside the columns of points."""

    def add(self, rows: Rows) -> None:
        """Add rows; a cell that is no point is counted as broken."""
        if not len(rows.numbers) or not rows.columns:
            return
        chart = self._chart_of(list(rows.columns))
        if chart is None:
            columns = self._columns.setdefault(None, Columns.of(list(rows.columns)))
            self._add(rows, columns, None)
            return
        for run, series in chart.series.items():
            columns = self._columns.setdefault(run, Columns.of_chart(chart, run))
            self._add(_of_run(rows, chart, columns, series), columns, run)

    def _chart_of(self, names: list[str]) -> Chart | None:
        """The chart that a table is: its first names say it."""
        if self._chart is None:
            self._chart = (names, chart_of(names))
            if self._chart[1] is not None:
                self._broken.notes.append("it is a chart of W&B: its columns __MIN, __MAX and _step are left out")
        first, chart = self._chart
        return chart if names == first else None

    def _add(self, rows: Rows, columns: Columns, run: str | None) -> None:
        if not len(rows.numbers):
            return
        time = self._time_column(rows, columns)
        facts = self._facts(rows, columns, time, run)
        roles = (columns.step, columns.task, time)
        others = {name: column for name, column in rows.columns.items() if name not in roles}
        if columns.value is not None:
            self._add_points(facts)
            of_points = (columns.metric, columns.variant, columns.value, columns.epoch)
            self.others.update(
                name for name in others if name not in of_points and cells.present(rows.columns[name]).any()
            )
        else:
            for name, column in others.items():
                self._add_column(facts, name, column)
        if facts.epochs is not None:
            self._add_steps(facts)

    def _time_column(self, rows: Rows, columns: Columns) -> str | None:
        """The first column that is named like a time and has mostly times. The first rows decide."""
        for name in columns.times if columns.time is None else ():
            if name not in rows.columns:
                continue
            moments, odd = cells.moments(rows.columns[name])
            if int((moments != times.UNKNOWN).sum()) > int(odd.sum()):
                columns.time = name
                break
            if odd.any():
                columns.times = tuple(other for other in columns.times if other != name)
        return columns.time

    # --- rows --------------------------------------------------------------------------------------

    def _facts(self, rows: Rows, columns: Columns, time: str | None, run: str | None) -> _Facts:
        count = len(rows.numbers)
        numbers, moments, none = np.zeros(count, np.int64), np.full(count, times.UNKNOWN, np.int64), np.zeros(count)
        steps = cells.Steps(numbers, none, np.ones(count, bool))
        if columns.step is not None:
            steps = cells.steps(rows.columns.get(columns.step, [None] * count))
            self._count("no step that is a number", rows, ~steps.known)
        if time is not None and time in rows.columns:
            moments, odd = cells.moments(rows.columns[time])
            self._count(times.NO_TIME, rows, odd, time)
        epochs = None
        if columns.epoch is not None and columns.epoch in rows.columns:
            values, is_number = cells.floats(rows.columns[columns.epoch])
            epochs = np.where(is_number, values, np.nan)
        tasks = self._rows_of_tasks(rows, columns, run)
        for sorted, places in tasks:
            numbers[places] = sorted.rows + np.arange(len(places))
            sorted.rows += len(places)
            moments[places] = nearest = times.nearest(moments[places], sorted.last_time)
            if sorted.first_time == times.UNKNOWN:
                sorted.first_time = int(nearest[0])
            sorted.last_time = int(nearest[-1])
        return _Facts(rows, columns, tasks, numbers, steps, moments, epochs)

    def _rows_of_tasks(self, rows: Rows, columns: Columns, run: str | None) -> list[tuple[Sorted, Int64Array]]:
        everything = np.arange(len(rows.numbers))
        if run is not None or columns.task is None or columns.task not in rows.columns:
            return [(self._sorted(run or self._task, columns), everything)]
        names = np.array([_text(cell) or self._task for cell in rows.columns[columns.task]], object)
        return [(self._sorted(name, columns), everything[names == name]) for name in dict.fromkeys(names.tolist())]

    def _sorted(self, task: str, columns: Columns) -> Sorted:
        if task not in self.tasks:
            self.tasks[task] = Sorted(self._folder / str(len(self.tasks)), step=columns.step)
        return self.tasks[task]

    # --- points ------------------------------------------------------------------------------------

    def _add_points(self, facts: _Facts) -> None:
        rows, columns = facts.rows, facts.columns
        nothing = [None] * len(rows.numbers)
        metrics = [self._metric] * len(nothing) if columns.metric is None else rows.columns.get(columns.metric, nothing)
        variants = nothing if columns.variant is None else rows.columns.get(columns.variant, nothing)
        series = np.array([self._number(*names) for names in zip(metrics, variants, strict=True)], np.int32)
        self._count("no metric", rows, series < 0)
        assert columns.value is not None
        values, is_point = cells.floats(rows.columns.get(columns.value, nothing))
        self._count("no value that is a number", rows, ~is_point, columns.value)
        self._put(facts, series, values, is_point & (series >= 0), sees_epochs=True)

    def _add_column(self, facts: _Facts, name: str, column: Sequence[Any]) -> None:
        values, is_point = cells.floats(column)
        is_text = ~is_point
        if is_text.any():
            is_text &= cells.present(column)
        if is_text.any():
            self.texts.add(name)
        if is_point.any():
            self.numbers.add(name)
        if name in self.numbers:
            self._count("no value that is a number", facts.rows, is_text, name)
            series = np.full(len(values), self._number(name, None), np.int32)
            self._put(facts, series, values, is_point, sees_epochs=name != facts.columns.epoch)

    def _add_steps(self, facts: _Facts) -> None:
        """The steps as a series, and the epochs where a row is a point, for tasks whose steps begin anew."""
        step, epoch = facts.columns.step, facts.columns.epoch
        assert step is not None
        assert epoch is not None
        assert facts.epochs is not None
        by = [(step, facts.steps.exact, facts.steps.known)]
        if facts.columns.value is not None:
            by.append((epoch, facts.epochs, ~np.isnan(facts.epochs)))
        for name, values, has_value in by:
            named = names_of(name) if facts.columns.value is None else names_of_x(name, name)
            number = self.series.setdefault(named, len(self.series))
            self.hidden.add(number)
            self._put(facts, np.full(len(values), number, np.int32), values, has_value, sees_epochs=False)

    def _number(self, metric: Any, variant: Any) -> int:
        """The number of a series; -1 without a metric."""
        metric, variant = _text(metric), _text(variant)
        if not metric:
            return -1
        return self.series.setdefault((metric, variant) if variant else names_of(metric), len(self.series))

    def _count(self, kind: str, rows: Rows, wrong: Bools, column: str = "") -> None:
        found = np.flatnonzero(wrong).tolist()
        if found:
            places = rows.places(found)
            self._broken.add(kind, [f"{one} ('{column}')" if column else one for one in places], len(found))

    def _put(self, facts: _Facts, series: Any, values: Float64Array, kept: Bools, *, sees_epochs: bool) -> None:
        """Write the points that are kept, and look at what their steps are."""
        kept = kept & facts.steps.known
        decimal = facts.steps.decimal
        for sorted, rows in facts.tasks:
            chosen = rows[kept[rows]]
            if not len(chosen):
                continue
            points = np.empty(len(chosen), POINT)
            steps = facts.steps
            columns = (series, facts.numbers, steps.whole, steps.exact, facts.times, values)
            for name, column in zip(POINT.names or (), columns, strict=True):
                points[name] = column[chosen]
            sorted.decimal.update(np.unique(series[chosen[decimal[chosen]]]).tolist())
            if sees_epochs and facts.epochs is not None:
                sorted.see_epochs(series[chosen], facts.epochs[chosen], steps.exact[chosen])
            data = points.tobytes()
            sorted.digest.update(data)
            sorted.checksum = (sorted.checksum + checksum(data)) % 2**64
            with sorted.path.open("ab") as file:
                file.write(data)


def _known(name: str) -> str:
    """A column's name as it is looked for: "Wall time" as "wall_time"."""
    return name.strip().lower().replace(" ", "_")


def _of_times(names: Sequence[str]) -> tuple[str, ...]:
    """The columns that are named like a time, the most usual name first."""
    known = {_known(name): name for name in reversed(names)}
    return tuple(known[name] for name in _TIMES if name in known)


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def _of_run(rows: Rows, chart: Chart, columns: Columns, series: dict[str, str]) -> Rows:
    """The rows of a chart in which a run has a point, with its metrics as columns."""
    points = np.any([cells.present(rows.columns[column]) for column in series.values()], axis=0)
    places = np.flatnonzero(points).tolist()
    named = {chart.x: chart.x, **({columns.step: columns.step} if columns.step else {})}
    named |= {f"{metric}_2" if metric in named else metric: column for metric, column in series.items()}
    chosen: Batch = {name: [rows.columns[column][row] for row in places] for name, column in named.items()}
    return Rows(chosen, [rows.numbers[row] for row in places], rows.unit)
