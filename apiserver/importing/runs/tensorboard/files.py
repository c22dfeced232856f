"""Finds the runs below a folder: each folder with event files is one. Reads their files in the order of their names.

A position says how far each file has been read, so a run can be read again while it grows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from apiserver.importing.report import ImportFailed
from apiserver.importing.runs.model import Part, Points, Position, Problem, Run, milliseconds, names_of
from apiserver.importing.runs.tensorboard import scalars
from apiserver.importing.runs.tensorboard.events import EventReader
from apiserver.importing.runs.tensorboard.records import Block, blocks
from apiserver.importing.runs.tensorboard.scalars import Column

_MARK = "tfevents"


class TensorboardFolder:
    """The runs below a folder, as one project. The task of a run is named as TensorBoard names the run."""

    unit = "bytes"

    def __init__(self, folder: Path, project: str | None, **bounds: int) -> None:
        """`bounds`: as `blocks` has them."""
        self._bounds = bounds
        self._folder = folder
        self._project = project or folder.resolve().name or "tensorboard"

    def total(self) -> int:
        return sum(_size(path) for _, files in self._folders() for path in files)

    def runs(self) -> Iterator[TensorboardRun | Problem]:
        for folder, files in self._folders():
            relative = folder.relative_to(self._folder).as_posix()
            name = self._folder.resolve().name if relative == "." else relative
            # The name of an event file says when and where it was begun, so it tells runs of the same name apart.
            oldest = min(path.name for path in files)
            yield TensorboardRun(
                Run(f"tensorboard {self._project}: {name} ({oldest})", self._project, name), files, **self._bounds
            )

    def _folders(self) -> Iterator[tuple[Path, list[Path]]]:
        if not self._folder.is_dir():
            raise ImportFailed(f"there is no folder '{self._folder}'")
        for here, folders, names in os.walk(self._folder):
            folders.sort()
            files = [Path(here, name) for name in sorted(names) if _MARK in name and Path(here, name).is_file()]
            if files:
                yield Path(here), files


class TensorboardRun:
    """The event files of one folder."""

    def __init__(self, run: Run, files: list[Path], **bounds: int) -> None:
        """`bounds`: as `blocks` has them."""
        self._bounds = bounds
        self.run = run
        self._files = files
        self._reader = EventReader(run)

    def parts(self, position: str | None) -> Iterator[Part]:
        read: dict[str, int] = json.loads(position) if position else {}
        for path in self._files:
            try:
                yield from self._file(path, read)
            except OSError as error:
                yield Problem(path.name, str(error))

    def _file(self, path: Path, read: dict[str, int]) -> Iterator[Part]:
        for block in blocks(path, read.get(path.name, 0), **self._bounds):
            yield from self._block(block, path.name)
            for problem in block.problems:
                yield Problem(self.run.name, problem)
            done, read[path.name] = block.end - read.get(path.name, 0), block.end
            yield Position(json.dumps(read), done)

    def _block(self, block: Block, name: str) -> Iterator[Part]:
        columns, others = scalars.read(block)
        for column in columns:
            if np.isfinite(column.wall_times).all():
                self.run.seen(float(column.wall_times.min()), float(column.wall_times.max()))
            yield _points(column)
        for number in others.tolist():
            yield from self._reader.parts(block.record(number), name)


def _points(column: Column) -> Points:
    first, last = (milliseconds(time) for time in (column.wall_times.min(), column.wall_times.max()))
    times = np.clip(np.nan_to_num(column.wall_times * 1000), first, last).round().astype(np.int64)
    return Points(*names_of(column.tag), column.steps, times, column.values)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
