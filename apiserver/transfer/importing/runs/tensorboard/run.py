"""Reads one run: the event files of its folders, in the order of their names, each from where it was read to before.

What is not written yet when reading begins comes next time. Before anything is read, it is looked for what changes the
meaning of parts that may have been given: restarts, which take values back, and tags of the run that add_hparams has,
too. If there is something that was not known, all is read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from apiserver.events.model import Int64Array
from apiserver.transfer.importing.missing import Reason
from apiserver.transfer.importing.runs.model import Again, Points, Position, Problem, Run
from apiserver.transfer.importing.runs.model import Part as Given
from apiserver.transfer.importing.runs.tensorboard import restarts, scalars
from apiserver.transfer.importing.runs.tensorboard.events import EventReader
from apiserver.transfer.importing.runs.tensorboard.records import Block, blocks
from apiserver.transfer.importing.runs.tensorboard.restarts import Restarts, Search
from apiserver.transfer.importing.runs.tensorboard.scalars import Column
from apiserver.transfer.importing.runs.tensorboard.structure import Part
from apiserver.transfer.importing.runs.tensorboard.times import Times, milliseconds_of, time_of
from apiserver.transfer.importing.runs.times import NO_TIME

#: Before the tags of add_hparams that the run itself has, too.
_HPARAMS = "hparams/"


class _FileRead(msgspec.Struct, array_like=True):
    """How far a file was read."""

    at: int = 0
    """The place up to which it was read."""
    known: int = 0
    """The place up to which restarts were looked for."""
    least: int | None = None
    """The least step of its restarts."""


class _FolderRead(msgspec.Struct):
    """How far the files of a folder were read."""

    files: dict[str, _FileRead] = {}
    plugins: dict[str, str] = {}
    """By tag."""
    doubled: list[str] = []
    """The tags of add_hparams that the run itself has, too."""


class _Read(msgspec.Struct):
    """How far a run has been read: its position, as JSON."""

    each: bool
    """Whether each folder is a run."""
    folders: dict[str, _FolderRead] = {}


@dataclass(slots=True)
class _Plan:
    """The files of a folder that are to be read."""

    part: Part
    read: _FolderRead
    stops: dict[Path, int] = field(default_factory=dict)
    """By file, up to where it is read."""
    restarts: Restarts = field(default_factory=Restarts)
    is_new: bool = False
    """Whether it changes the meaning of what was read before."""

    def files(self) -> Iterator[tuple[_FileRead, int]]:
        """What was done with the files, and up to where they are read now."""
        return ((self.read.files[path.name], stop) for path, stop in self.stops.items())


class TensorboardRun:
    """The event files of a run."""

    def __init__(self, run: Run, parts: list[Part], each: bool, grows: bool, /, **bounds: int) -> None:
        """`each` and `grows` are those of the folder: a file that grows may end in the middle of a record."""
        self.run = run
        self._parts = parts
        self._each = each
        self._grows = grows
        self._bounds = bounds
        self._behind: list[Problem] = []
        """The parts that each import gives anew."""

    def parts(self, position: str | None) -> Iterator[Given]:
        self._behind = []
        read = self._read(position)
        plans = self._plans(read) if read is not None else []
        if read is None or (position is not None and any(plan.is_new for plan in plans)):
            yield Again(cleared=True)
            self._behind = []
            read = _Read(self._each)
            plans = self._plans(read)
        for plan in plans:
            for number, path in enumerate(plan.part.files):
                if path in plan.stops:
                    yield from self._file(plan, number, path, read)
        yield from self._behind

    def _read(self, position: str | None) -> _Read | None:
        """How far the run was read; None if it was read otherwise."""
        try:
            read = msgspec.json.decode(position, type=_Read) if position else _Read(self._each)
        except msgspec.DecodeError:
            return None
        return read if read.each == self._each else None

    # --- before anything is read ---------------------------------------------------------------------

    def _plans(self, read: _Read) -> list[_Plan]:
        plans = [_Plan(part, read.folders.setdefault(part.name, _FolderRead())) for part in self._parts]
        for plan in plans:
            self._look_for_restarts(plan)
        for plan in plans:
            for parent in plans:
                if plan.part.metrics and parent.part.folder in plan.part.folder.parents:
                    self._look_for_doubled(plan, parent)
        return plans

    def _look_for_restarts(self, plan: _Plan) -> None:
        for path in plan.part.files:
            plan.read.files.setdefault(path.name, _FileRead())
            try:
                plan.stops[path] = path.stat().st_size
            except OSError as error:
                self._behind.append(Problem(_name(plan.part, path), str(error)))
        if all(file.at == file.known == stop for file, stop in plan.files()):
            return
        search = Search(**self._bounds)
        for number, path in enumerate(plan.part.files):
            if path in plan.stops:
                file = plan.read.files[path.name]
                try:
                    file.least = search.file(number, path, file.at, file.known, plan.stops[path], file.least)
                except OSError:
                    continue  # it cannot be read, which is said when it is to be
                file.known = max(file.known, plan.stops[path])
        plan.restarts, plan.is_new = search.restarts, search.is_new

    def _look_for_doubled(self, plan: _Plan, parent: _Plan) -> None:
        """Find tags of add_hparams that the folder above has, too: their points would be in one series."""
        if parent.part.naming != plan.part.naming:
            return
        was_read = any(file.at for file in plan.read.files.values())
        for tag in sorted(plan.part.metrics - set(plan.read.doubled)):
            files = ((path, parent.read.files[path.name].at, stop) for path, stop in parent.stops.items())
            if any(restarts.holds_tag(path, at, stop, tag) for path, at, stop in files):
                plan.read.doubled.append(tag)
                plan.is_new |= was_read

    # --- reading ---------------------------------------------------------------------------------------

    def _file(self, plan: _Plan, number: int, path: Path, read: _Read) -> Iterator[Given]:
        file = plan.read.files[path.name]
        name = _name(plan.part, path)
        try:
            times = Times(time_of(path))
            reader = EventReader(
                *(self.run, name, times, partial(_names, plan), partial(_keeps, plan.restarts)), plan.read.plugins
            )
            for block in blocks(path, file.at, stop=plan.stops[path], **self._bounds):
                yield from self._block(block, restarts.places_of(number, block), reader, plan)
                done, file.at = block.end - file.at, block.end
                yield Position(msgspec.json.encode(read).decode(), done)
                if block.broken:
                    self._behind.append(Problem(name, block.broken))
                    return
        except OSError as error:
            self._behind.append(Problem(name, str(error)))
            return
        if file.at < plan.stops[path] and not self._grows:
            self._behind.append(Problem(name, f"from byte {file.at:,} on it ends in the middle of a record"))

    def _block(self, block: Block, places: Int64Array, reader: EventReader, plan: _Plan) -> Iterator[Given]:
        columns, others = scalars.read(block)
        for column in columns:
            kept = plan.restarts.keep(column.tag, places[column.numbers], column.steps)
            reader.taken_back += len(kept) - int(kept.sum())
            if kept.any():
                yield self._points(column, kept, reader)
        for number in others.tolist():
            yield from reader.parts(block.record(number), int(places[number]))
        for cause in block.problems:
            yield Problem(reader.file, cause)
        for name, count in reader.times.take_odd():
            yield Problem(name, NO_TIME, count=count)
        if reader.taken_back:
            yield Problem(reader.file, "a restart took back its step", Reason.OVERWRITTEN, reader.taken_back)
            reader.taken_back = 0

    def _points(self, column: Column, kept: npt.NDArray[np.bool_], reader: EventReader) -> Points:
        metric, variant = reader.names(column.tag)
        times = reader.times.of(f"series {metric}/{variant}", column.wall_times[kept])
        self.run.seen(float(times.min()), float(times.max()))
        return Points(metric, variant, column.steps[kept], milliseconds_of(times), column.values[kept])


def _names(plan: _Plan, tag: str) -> tuple[str, str]:
    return plan.part.naming(_HPARAMS + tag if tag in plan.read.doubled else tag)


def _keeps(found: Restarts, tag: str, place: int, step: int) -> bool:
    return bool(found.keep(tag, np.array([place]), np.array([step]))[0])


def _name(part: Part, path: Path) -> str:
    """The name of a file in messages."""
    return f"{part.name}/{path.name}" if part.name else path.name
