"""Neptune's runs, as neptune-exporter writes them: Parquet files `<run>_part_<n>.parquet`, and files beside them.

A row is a value of an attribute. Columns: `project_id`, `run_id`, `attribute_path`, `attribute_type`, `step`,
`timestamp`, and one column for the values of each type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from apiserver.importing.report import ImportFailed
from apiserver.importing.runs.folders import file_at, files_below, is_below
from apiserver.importing.runs.model import (
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
    clamped,
    names_of,
)
from apiserver.importing.runs.tables import Batch, batches
from apiserver.protobuf_wire import Malformed
from apiserver.sizes import counted

_PART = re.compile(r"(.*)_part_(\d+)\.parquet$")
_PARAMETERS = {"float": "float_value", "int": "int_value", "string": "string_value", "bool": "bool_value"}
_TAGS = ("sys/tags", "sys/group_tags")


class NeptuneFolder:
    """The runs below a folder; their projects are below `project`, if there is one."""

    unit = "bytes"

    def __init__(self, folder: Path, project: str | None) -> None:
        self._folder = folder
        self._project = project
        if not folder.is_dir():
            raise ImportFailed(f"there is no folder '{folder}'")

    def total(self) -> int:
        return sum(path.stat().st_size for _, _, path in self._files())

    def runs(self) -> Iterator[NeptuneRun | Problem]:
        for name, parts in groupby(sorted(self._files()), key=lambda one: one[0]):
            paths = [path for _, _, path in parts]
            try:
                yield NeptuneRun(paths, self._folder, self._project)
            except (OSError, ValueError) as error:
                yield Problem(name, str(error))

    def _files(self) -> Iterator[tuple[str, int, Path]]:
        for name, path in files_below(self._folder):
            if found := _PART.fullmatch(name):
                yield found[1], int(found[2]), path


class NeptuneRun:
    """The Parquet files of one run. Raises Malformed if they are no such files."""

    def __init__(self, paths: list[Path], root: Path, project: str | None) -> None:
        self._paths = paths
        self._root = root
        first = next(batches(paths[0]), {})
        if not first or not {"project_id", "run_id", "attribute_path", "attribute_type"} <= first.keys():
            raise Malformed("it is not a table of neptune-exporter, or empty")
        named, id = str(first["project_id"][0]), str(first["run_id"][0])
        self.run = Run(f"neptune {named}/{id}", f"{project}/{named}" if project else named, id)

    def parts(self, position: str | None) -> Iterator[Part]:
        """The rows, file by file. A position says how many files were read, and how large they are."""
        sizes = [path.stat().st_size for path in self._paths]
        before = json.loads(position) if position else []
        done = len(before) if sizes[: len(before)] == before else 0
        if before and not done:
            yield Again()
        for number, path in enumerate(self._paths):
            if number < done:
                continue
            try:
                for batch in batches(path):
                    yield from self._batch(batch)
            except (OSError, ValueError) as error:
                yield Problem(path.name, str(error))
            yield Position(json.dumps(sizes[: number + 1]), sizes[number])

    def _batch(self, batch: Batch) -> Iterator[Part]:
        types = np.array(batch["attribute_type"], object)
        series = np.flatnonzero(types == "float_series")
        yield from self._points(batch, series)
        for row in np.flatnonzero(types != "float_series").tolist():
            try:
                yield from self._row({name: column[row] for name, column in batch.items()})
            except (ValueError, TypeError, KeyError) as error:
                yield Problem(str(batch["attribute_path"][row]), str(error))

    def _points(self, batch: Batch, rows: Any) -> Iterator[Part]:
        """Points of all float series. Steps are decimal numbers: those between whole ones cannot be kept."""
        paths = np.array(batch["attribute_path"], object)[rows]
        steps = np.array([float("nan") if one is None else float(one) for one in _chosen(batch["step"], rows)])
        times = np.array([one or 0 for one in _chosen(batch["timestamp"], rows)], np.int64)
        values = np.array([np.nan if one is None else one for one in _chosen(batch["float_value"], rows)], np.float64)
        whole = steps == np.floor(steps)
        for path in dict.fromkeys(paths.tolist()):
            chosen = paths == path
            if not whole[chosen].all():
                left = int((chosen & ~whole).sum())
                yield Problem(str(path), f"{counted(left, 'points')} left out: steps have to be whole numbers")
            chosen &= whole
            if chosen.any():
                self.run.seen(float(times[chosen].min()) / 1000, float(times[chosen].max()) / 1000)
                yield Points(
                    *names_of(str(path)), steps[chosen].astype(np.int64), clamped(times[chosen]), values[chosen]
                )

    def _row(self, row: dict[str, Any]) -> Iterator[Part]:
        path, kind = str(row["attribute_path"]), row["attribute_type"]
        metric, variant = names_of(path)
        step, time = int(row.get("step") or 0), int(row.get("timestamp") or 0)
        if kind == "string_series":
            yield Line(time, str(row["string_value"]), metric=metric, variant=variant, iter=step)
        elif kind == "histogram_series":
            found = row["histogram_value"]
            edges, counts = ([float(one) for one in found[name]] for name in ("edges", "values"))
            if len(edges) != len(counts) + 1:
                raise Malformed("a histogram has not one edge more than bins")
            yield Figure(metric, variant, step, time, bars(path, edges, counts))
        elif kind in ("file", "file_series"):
            yield self._file(path if kind == "file" else f"{path}/{step}", row["file_value"])
        elif kind in _PARAMETERS:
            self._parameter(path, row[_PARAMETERS[kind]])
        elif kind == "datetime":
            self._parameter(path, row["datetime_value"])
        elif kind == "string_set":
            values = [str(one) for one in row["string_set_value"] or ()]
            if path in _TAGS:
                self.run.tags = sorted({*self.run.tags, *values})
            else:
                self._parameter(path, json.dumps(values, ensure_ascii=False))
        else:
            yield Unmapped(str(kind), path)

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
            if relative and is_below(path, root) and path.is_file():
                return Artifact(name, file_at(path), path.name)
        return Problem(name, f"there is no file '{relative}' beside the tables")


def _chosen(column: Any, rows: Any) -> Any:
    return column[rows] if isinstance(column, np.ndarray) else [column[row] for row in rows.tolist()]
