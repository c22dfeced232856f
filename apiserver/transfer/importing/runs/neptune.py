"""Neptune's runs, as neptune-exporter writes them: Parquet files `<run>_part_<n>.parquet`, and files beside them.

A row is a value of an attribute. Columns: `project_id`, `run_id`, `attribute_path`, `attribute_type`, `step`,
`timestamp`, and one column for the values of each type. Steps are decimals: if a series has one that is not whole, its
points are numbered. So the tables are looked through for such steps first, which takes a small part of the time.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from apiserver.common.protobuf_wire import Malformed
from apiserver.events.model import Float64Array, Int64Array
from apiserver.transfer.importing.missing import Reason
from apiserver.transfer.importing.runs import times
from apiserver.transfer.importing.runs.folders import RunsFolder, file_at, is_below
from apiserver.transfer.importing.runs.model import (
    Again,
    Artifact,
    Figure,
    Line,
    Part,
    Points,
    Position,
    Problem,
    Run,
    Unmapped,
    bars,
    names_of,
    numbered_x,
)
from apiserver.transfer.importing.runs.tables.batches import Batch, batches

_PART = re.compile(r"(.*)_part_(\d+)\.parquet$")
#: The columns of attributes with one value, by their types.
_VALUES = {
    "float": "float_value",
    "int": "int_value",
    "string": "string_value",
    "bool": "bool_value",
    "datetime": "datetime_value",
    "string_set": "string_set_value",
}
_FILES = ("file", "file_series")
_LOOKED_AT = (*_VALUES, *_FILES)
#: The series whose points are numbered if steps are decimals.
_NUMBERED = ("float_series", "histogram_series")
_TAGS = ("sys/tags", "sys/group_tags")


class NeptuneFolder(RunsFolder):
    """The runs of Neptune below a folder."""

    def runs(self) -> Iterator[NeptuneRun | Problem]:
        tables = sorted((*_run_and_number(name), path) for name, path in self._files())
        for run, parts in groupby(tables, key=lambda part: part[0]):
            paths = [path for _, _, path in parts]
            try:
                yield NeptuneRun(paths, self._folder, self._project)
            except (OSError, ValueError) as error:
                yield Problem(run, str(error))

    def _is_of_run(self, name: str) -> bool:
        return _PART.fullmatch(name) is not None


def _run_and_number(name: str) -> tuple[str, int]:
    """The run of a table, and the table's number in it, by the name of its file."""
    match = _PART.fullmatch(name)
    assert match is not None
    return match[1], int(match[2])


class NeptuneRun:
    """The Parquet files of one run. Raises Malformed if they are no such files."""

    def __init__(self, paths: list[Path], root: Path, project: str | None) -> None:
        self._paths = paths
        self._root = root
        first = next(batches(paths[0]), {})
        if not {"project_id", "run_id", "attribute_path", "attribute_type"} <= first.keys():
            raise Malformed("it is not a table of neptune-exporter, or empty")
        named, id = str(first["project_id"][0]), str(first["run_id"][0])
        self.run = Run(f"neptune {named}/{id}", f"{project}/{named}" if project else named, id)
        self._given: Counter[str] = Counter()
        """By series with decimal steps, the points that were given."""
        self._decimal: set[str] = set()
        self._files: list[tuple[str, Any]] = []
        """By name, where they are."""
        self._odd: Counter[str] = Counter()
        """By attribute, the times of a file that cannot be believed."""
        self._time = times.of_file(paths[0])
        """The last time that was believed."""

    def parts(self, position: str | None) -> Iterator[Part]:
        """The rows, file by file, and then the files beside them, each time.

        A position says how many files were read, how large they are, and which series have decimal steps.
        """
        sizes = [path.stat().st_size for path in self._paths]
        self._look()
        decimal = _digest(sorted(self._decimal))
        before = _before(position)
        done = len(before.sizes)
        if position and (before.decimal != decimal or sizes[:done] != before.sizes):
            yield Again(cleared=before.decimal != decimal)
            done = 0
        self._count_given(self._paths[:done])
        is_whole = True
        for number, path in enumerate(self._paths[done:], done + 1):
            try:
                for batch in batches(path):
                    yield from self._batch(batch)
            except (OSError, ValueError, KeyError) as error:
                is_whole = False  # it is read again, as it may be repaired
                yield Problem(path.name, f"it has no column {error}" if isinstance(error, KeyError) else str(error))
            for name, count in self._odd.items():
                yield Problem(name, times.NO_TIME, count=count)
            self._odd.clear()
            if is_whole:
                yield Position(json.dumps({"sizes": sizes[:number], "decimal": decimal}), sizes[number - 1])
        for name, value in self._files:
            yield self._file(name, value)

    def _look(self) -> None:
        """Read all tables for the series with decimal steps, the fields of the run, and its files."""
        self._decimal, self._files = set(), []
        for path in self._paths:
            with suppress(OSError, ValueError, KeyError):  # it is told when the table is read
                for batch in batches(path):
                    self._look_at(batch)

    def _look_at(self, batch: Batch) -> None:
        steps = _numbers(batch["step"])
        types = np.array(batch["attribute_type"], object)
        is_series = np.isin(types, _NUMBERED)
        decimal = np.flatnonzero(is_series & (steps != np.floor(steps)) & np.isfinite(steps)).tolist()
        self._decimal.update(str(batch["attribute_path"][row]) for row in decimal)
        for row in np.flatnonzero(np.isin(types, list(_VALUES))).tolist():
            self._attribute(str(batch["attribute_path"][row]), batch[_VALUES[types[row]]][row])
        for row in np.flatnonzero(np.isin(types, _FILES)).tolist():
            name = str(batch["attribute_path"][row])
            if types[row] == "file_series":
                name = f"{name}/{_shown(steps[row])}"
            self._files.append((name, batch["file_value"][row]))

    def _count_given(self, paths: list[Path]) -> None:
        """Count the points of numbered series in these files."""
        self._given.clear()
        for path in paths if self._decimal else ():
            with suppress(OSError, ValueError, KeyError):
                for batch in batches(path):
                    steps = _numbers(batch["step"])
                    is_given = np.isin(np.array(batch["attribute_type"], object), _NUMBERED) & _are_steps(steps)
                    names = (str(batch["attribute_path"][row]) for row in np.flatnonzero(is_given).tolist())
                    self._given.update(name for name in names if name in self._decimal)

    def _batch(self, batch: Batch) -> Iterator[Part]:
        types = np.array(batch["attribute_type"], object)
        is_point = types == "float_series"
        yield from self._points(batch, np.flatnonzero(is_point))
        for row in np.flatnonzero(~is_point & ~np.isin(types, _LOOKED_AT)).tolist():
            try:
                yield from self._row({name: column[row] for name, column in batch.items()})
            except (ValueError, TypeError, KeyError) as error:
                yield Problem(str(batch["attribute_path"][row]), str(error))

    def _points(self, batch: Batch, rows: Int64Array) -> Iterator[Part]:
        """The points of all float series among the rows."""
        if not len(rows):
            return
        paths = [str(batch["attribute_path"][row]) for row in rows.tolist()]
        numbers: dict[str, int] = {}
        series = np.array([numbers.setdefault(path, len(numbers)) for path in paths])
        steps, values = _numbers(batch["step"])[rows], _numbers(batch["float_value"])[rows]
        moments = times.believed(sent := _numbers(batch["timestamp"])[rows])
        odd = np.isfinite(sent) & (moments == times.UNKNOWN)
        self._odd.update(paths[row] for row in np.flatnonzero(odd).tolist())
        order = np.argsort(series, kind="stable")
        for path, chosen in zip(numbers, np.split(order, np.cumsum(np.bincount(series))[:-1]), strict=True):
            are_steps = _are_steps(steps[chosen])
            if left := int((~are_steps).sum()):
                yield Problem(path, "a point without a step", count=left)
            yield from self._series(path, *(column[chosen[are_steps]] for column in (steps, moments, values)))

    def _series(self, path: str, steps: Float64Array, moments: Int64Array, values: Float64Array) -> Iterator[Points]:
        if not len(steps):
            return
        known = moments[moments != times.UNKNOWN]
        if len(known):
            self.run.seen(float(known.min()) / 1000, float(known.max()) / 1000)
            self._time = int(known[-1])
        moments = times.nearest(moments)
        moments[moments == times.UNKNOWN] = self._time
        if path not in self._decimal:
            yield Points(*names_of(path), steps.astype(np.int64), moments, values)
            return
        iters = np.arange(self._given[path], self._given[path] + len(steps))
        self._given[path] += len(steps)
        yield Points(*names_of(path), iters, moments, values)
        yield numbered_x("step", names_of(path), iters, moments, steps)

    def _row(self, row: dict[str, Any]) -> Iterator[Part]:
        path, kind = str(row["attribute_path"]), row["attribute_type"]
        if kind == "string_series":
            yield self._line(path, row)
        elif kind == "histogram_series":
            yield from self._histogram(path, row)
        else:
            yield Unmapped(str(kind), path)

    def _line(self, path: str, row: dict[str, Any]) -> Line:
        """A line of text. One at a decimal step has no iteration, and the step as a field of its own."""
        metric, variant = names_of(path)
        step = float("nan") if row["step"] is None else float(row["step"])
        iter = int(step) if _are_steps(step) and step == int(step) else None
        more = {} if iter is not None or np.isnan(step) else {"step": step}
        time, text = self._moment(path, row), str(row["string_value"])
        return Line(time, text, metric=metric, variant=variant, iter=iter, more=more)

    def _histogram(self, path: str, row: dict[str, Any]) -> Iterator[Part]:
        found, step = row["histogram_value"], _numbers([row["step"]])
        edges, counts = ([float(one) for one in found[name]] for name in ("edges", "values"))
        if len(edges) != len(counts) + 1:
            raise Malformed("a histogram has not one edge more than bins")
        if not _are_steps(step).all():
            raise Malformed("a histogram without a step")
        time, iters = self._moment(path, row), np.floor(step).astype(np.int64)
        if path in self._decimal:
            iters[0] = self._given[path]
            self._given[path] += 1
            yield numbered_x("step", names_of(path), iters, np.array([time]), step)
        yield Figure(*names_of(path), int(iters[0]), time, bars(path, edges, counts))

    def _moment(self, path: str, row: dict[str, Any]) -> int:
        """The time of a row, else the last one that was believed."""
        if row["timestamp"] is not None:
            moment = int(times.believed(np.array([row["timestamp"]]))[0])
            if moment == times.UNKNOWN:
                self._odd[path] += 1
            else:
                self._time = moment
                self.run.seen(moment / 1000, moment / 1000)
        return self._time

    def _attribute(self, path: str, value: Any) -> None:
        if isinstance(value, list):
            value = [str(one) for one in value]
        if isinstance(value, list) and path in _TAGS:
            self.run.tags = sorted({*self.run.tags, *value})
        else:
            self._parameter(path, json.dumps(value, ensure_ascii=False) if isinstance(value, list) else value)

    def _parameter(self, path: str, value: Any) -> None:
        if value is None:
            return
        section, _, name = path.partition("/")
        self.run.parameters.setdefault(section if name else "parameters", {})[name or section] = str(value)
        if path == "sys/failed":
            self.run.status = "failed" if value is True else "completed"
        if path == "sys/name" and value:
            self.run.name = str(value)
        if path == "sys/description":
            self.run.comment = str(value)

    def _file(self, name: str, value: Any) -> Part:
        """The file beside the tables: in `files` instead of `data`, or below the folder itself."""
        relative = str((value or {}).get("path") or "")
        for root in (self._root, self._root / "files", self._root.parent / "files"):
            path = root / relative
            try:
                if relative and is_below(path, root) and path.is_file():
                    return Artifact(name, file_at(path), path.name)
            except OSError as error:
                return Problem(name, str(error))
        return Problem(name, f"there is no file '{relative}' beside the tables", Reason.ABSENT)


class _Before(NamedTuple):
    """The fields of a position."""

    sizes: list[int]
    decimal: str


def _before(position: str | None) -> _Before:
    """The fields of a position; before the first one, no file was read."""
    return _Before(**json.loads(position)) if position else _Before([], "")


def _digest(names: list[str]) -> str:
    """Some names in short."""
    return hashlib.blake2b(json.dumps(names).encode(), digest_size=6).hexdigest()


def _numbers(column: Sequence[Any]) -> Float64Array:
    """The numbers of a column; NaN for a missing number."""
    if isinstance(column, np.ndarray):
        return column.astype(np.float64)
    return np.array([np.nan if one is None else one for one in column], np.float64)


def _are_steps(steps: Any) -> Any:
    """Which numbers can be steps."""
    return np.abs(steps) < 2**63


def _shown(step: float) -> str:
    """A step without decimals that say nothing; 0 if there is none."""
    return str(int(step)) if step == np.floor(step) else str(step) if np.isfinite(step) else "0"
