"""The x of the points of a series, as W&B shows it.

It is `_step`, unless `define_metric` names another one, for a series or for all whose names begin in some way:

    name "loss"         step_metric "batch"
    glob_name "val/*"   step_metric "epoch"

The longest name that fits counts, and a definition without a step metric means `_step`. In a run that reads the files
of TensorBoard, x is `global_step`, of the series' own folder if only that has one. A row without the x of a series has
the last one if the two are synced; otherwise that point stays at `_step`.

If all x of a series are whole, they are its iterations. Otherwise its points are numbered in their order, and the exact
x are a series of their own: the metric "x: epoch" with the variant "val/acc" has them at the same iterations. So all x
have to be known before the first point is given. `survey` finds them.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from apiserver.common.protobuf_wire import Malformed
from apiserver.transfer.importing.runs.names import are_short
from apiserver.transfer.importing.runs.protobuf import parsed, text
from apiserver.transfer.importing.runs.wandb import messages
from apiserver.transfer.importing.runs.wandb.history import Item, items, number, values_of
from apiserver.transfer.importing.runs.wandb.log import MAX_RECORD, START, Record, records

_GLOBAL_STEP = "global_step"
_PLAIN = ("", "_step")
#: How the JSON of what is no point begins: a text, a list, null. What is inside of an object, and no number, is empty.
_NO_POINT = (b'"', b"[", b"n", b"")


class Definition(msgspec.Struct, frozen=True):
    """The x of a series: a metric, or "" for `_step`."""

    step: str = ""
    sync: bool = False


class Definitions(msgspec.Struct, omit_defaults=True):
    """All that a run has defined."""

    names: dict[str, Definition] = {}
    beginnings: dict[str, Definition] = {}
    """By what the names of series begin with: "val/" for the glob `val/*`."""
    tensorboard: bool = False

    def read(self, data: bytes) -> None:
        """Take what a record defines. Raises Malformed."""
        if _is_history(data):
            return
        record = parsed(messages.Record, data)
        self.tensorboard |= record.HasField("tbrecord")
        self._define(record.metric)

    def _define(self, metric: messages.Metric) -> None:
        name, glob = text(metric.name), text(metric.glob_name)
        if metric.expanded_from_glob or not (name or glob):  # W&B's own copy of a glob, for one series; or no metric
            return
        of, key = (self.names, name.replace("\\.", ".")) if name else (self.beginnings, glob.removesuffix("*"))
        before = Definition() if metric.control.overwrite else of.get(key, Definition())
        step = text(metric.step_metric).replace("\\.", ".") or before.step
        defined = Definition(step, before.sync or metric.options.step_sync)
        if key in of or not name or self.of(name) != defined:
            of[key] = defined

    def of(self, name: str) -> Definition | None:
        """The definition of a series."""
        if name in self.names or name.startswith("_"):
            return self.names.get(name)
        fitting = [beginning for beginning in self.beginnings if name.startswith(beginning)]
        return self.beginnings[max(fitting, key=len)] if fitting else None

    def steps(self) -> set[str]:
        """All metrics that are the x of others."""
        definitions = (*self.names.values(), *self.beginnings.values())
        return {definition.step for definition in definitions}.difference(_PLAIN)


class Placed(msgspec.Struct, omit_defaults=True):
    """What is to be known of the points that were given."""

    definitions: Definitions = msgspec.field(default_factory=Definitions)
    whole: set[str] = set()
    """Series with an x of their own, all of which were whole."""
    numbered: dict[str, int] = {}
    """How many points numbered series have."""
    latest: dict[str, float] = {}
    """The last values of metrics that are the x of others."""


class Place(NamedTuple):
    """Where a point is: its iteration, and of a numbered series what x it has, and the name of that."""

    iteration: int
    x: float | None = None
    of: str = ""


class Axes:
    """Places points, row by row."""

    def __init__(self, placed: Placed, decimal: Iterable[str] = ()) -> None:
        """`decimal`: further series that are to be numbered."""
        self._placed = placed
        self._numbered = placed.numbered.keys() | set(decimal)
        self._steps = placed.definitions.steps()
        self._definitions: dict[str, Definition | None] = {}
        self._row: dict[str, float] = {}
        self.are_plain = not (self._steps or placed.definitions.tensorboard)
        """Whether all x are `_step`."""

    def begin_row(self, row: list[Item]) -> None:
        """The next points are of this row."""
        self._row = {}
        for name, value in values_of(row):
            if name in self._steps or (self._placed.definitions.tensorboard and _is_global_step(name)):
                x = number(value)
                if x is not None:
                    self._row[name] = x
        self._placed.latest.update((name, self._row[name]) for name in self._row.keys() & self._steps)

    def place(self, name: str, step: int) -> Place:
        """Where the next point of a series is, in a row of this `_step`."""
        x, of = self._x(name)
        if name in self._numbered:
            count = self._placed.numbered.get(name, 0)
            self._placed.numbered[name] = count + 1
            return Place(count, x, of)
        if x is None:
            return Place(step)
        self._placed.whole.add(name)
        return Place(int(x))

    def decimal(self, row: list[Item]) -> set[str]:
        """The series of a row whose x is not whole."""
        self.begin_row(row)
        points = (name for name, value in values_of(row) if value[:1] not in _NO_POINT)
        return {name for name in points if not _is_whole(self._x(name)[0])}

    def _x(self, name: str) -> tuple[float | None, str]:
        """The x of a series in this row, and what it is."""
        if name not in self._definitions:
            self._definitions[name] = self._placed.definitions.of(name)
        definition = self._definitions[name]
        if definition is None:
            of = self._global_step(name) if self._placed.definitions.tensorboard else ""
            return (self._row[of], of) if of and of != name else (None, "")
        of = definition.step
        if of in _PLAIN or of == name:
            return None, ""
        return self._row.get(of, self._placed.latest.get(of) if definition.sync else None), of

    def _global_step(self, name: str) -> str:
        """The step of TensorBoard that a series has in this row: the one nearest to it."""
        folders = name.split("/")[:-1] if are_short(name, ()) else []
        candidates = ("/".join([*folders[:depth], _GLOBAL_STEP]) for depth in range(len(folders), -1, -1))
        return next((name for name in candidates if name in self._row), "")


class Surveyed(NamedTuple):
    """What is known of all records that there are."""

    definitions: Definitions
    decimal: set[str]
    """The series behind the places that are to be numbered."""
    ends: dict[str, int]
    """By file, the place behind its last whole record."""


def survey(logs: dict[str, Path], places: dict[str, int], placed: Placed, most: int = MAX_RECORD) -> Surveyed:
    """Read all records behind the places of some files. Raises OSError, and Malformed for other files."""
    definitions = msgspec.convert(msgspec.to_builtins(placed.definitions), Definitions)
    ends: dict[str, int] = {}
    for name, path in logs.items():
        ends[name] = places.get(name, START)
        for record in records(path, ends[name], most):
            if isinstance(record, Record):
                ends[name] = record.end
                with suppress(Malformed):  # it is told when it is read
                    definitions.read(record.data)
    axes = Axes(Placed(definitions, latest=dict(placed.latest)))
    decimal: set[str] = set()
    if not axes.are_plain:
        for name, path in logs.items():
            for record in records(path, places.get(name, START), most):
                if isinstance(record, Record):
                    decimal |= _decimal(axes, record.data)
                    if record.end >= ends[name]:
                        break
    return Surveyed(definitions, decimal, ends)


def _decimal(axes: Axes, data: bytes) -> set[str]:
    try:
        record = parsed(messages.Record, data)
        return axes.decimal(items(record.history)) if record.HasField("history") else set()
    except Malformed:
        return set()


def _is_history(data: bytes) -> bool:
    """Whether a record is a row of the history, as most are: told fast by what is behind its number."""
    at = 1
    while data[at : at + 1] >= b"\x80":
        at += 1
    return data[:1] == b"\x08" and data[at + 1 : at + 2] == b"\x12"


def _is_global_step(name: str) -> bool:
    return name == _GLOBAL_STEP or name.endswith(f"/{_GLOBAL_STEP}")


def _is_whole(x: float | None) -> bool:
    """Whether x can be an iteration, of 64 bits."""
    return x is None or (x == int(x) and -(2**63) <= x < 2**63)
