"""Reads one run: the logs of its folders, in the order in which they began, each from where it was read to before.

Config, tags and notes become parameters, tags and the comment. Numbers of the history become scalars, under the names
that W&B shows ("n.x" for nested ones) and at the x that it shows (`axes.py`). Text and alerts become log lines, media
and plots what they are (`media.py`), the console the log, and the machine's statistics scalars by seconds since the
start.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from apiserver.common.protobuf_wire import Malformed
from apiserver.transfer.importing.runs.model import (
    BROKEN,
    Again,
    Artifact,
    Line,
    Part,
    Position,
    Problem,
    Unmapped,
    milliseconds,
    names_of,
    names_of_x,
)
from apiserver.transfer.importing.runs.names import are_short
from apiserver.transfer.importing.runs.protobuf import parsed, text
from apiserver.transfer.importing.runs.times import NO_TIME
from apiserver.transfer.importing.runs.wandb import messages
from apiserver.transfer.importing.runs.wandb.axes import Axes, Placed, Surveyed, survey
from apiserver.transfer.importing.runs.wandb.config import add_config, add_summary
from apiserver.transfer.importing.runs.wandb.console import Console
from apiserver.transfer.importing.runs.wandb.files import RunFiles
from apiserver.transfer.importing.runs.wandb.folders import Log, together
from apiserver.transfer.importing.runs.wandb.gathering import Gathered
from apiserver.transfer.importing.runs.wandb.history import (
    OWN,
    Item,
    full_name,
    items,
    number,
    of_json,
    root_of,
    step_beside,
    tree,
)
from apiserver.transfer.importing.runs.wandb.log import MAX_RECORD, START, records
from apiserver.transfer.importing.runs.wandb.media import At, media
from apiserver.transfer.importing.runs.wandb.times import believed_seconds, seconds_of

#: Points that are kept until they are given on together.
_TOGETHER = 50_000
#: W&B keeps a table as an artifact, too.
_TABLE = b"run_table"
_ALERTS = {b"WARN": "warning", b"ERROR": "error"}
#: The version of positions.
_FORM = 1
#: The exceptions that a broken value may raise.
_BROKEN = (*BROKEN, OSError)


#: By log and name, the marks of files that were given.
Marks: TypeAlias = dict[tuple[Path, str], tuple[int, int] | None]


class Reached(msgspec.Struct, omit_defaults=True):
    """How far a run was read: its position."""

    form: int = 0
    """0: an older one, by which all x were `_step`."""
    places: dict[str, int] = {}
    """By folder, the place in its log."""
    offsets: dict[str, int] = {}
    """By folder, what is added to each `_step`."""
    last: int = -1
    """The greatest step, and the number of a row without one."""
    began: float | None = None
    """What the machine's statistics are counted from."""
    placed: Placed = msgspec.field(default_factory=Placed)


class WandbRun:
    """One run."""

    def __init__(self, logs: list[Log], given: Path, listed: Marks, most: int = MAX_RECORD) -> None:
        """`logs` are in their order, `given` is the folder that is imported, `listed` notes files that were given, and
        `most` are the bytes of the largest record that is taken.
        """
        self._most = most
        self._logs = logs
        self._given = given
        self._listed = listed
        self.run = together([log.run for log in logs])
        self._status = self.run.status
        self._reached = Reached()
        self._axes = Axes(Placed())
        self._files = RunFiles(logs[0].path.parent / "files", given)
        self._time = 0.0
        self._points = Gathered(lambda names: names_of(full_name(names)))
        self._x = Gathered(lambda names: names_of_x(full_name(names[:1]), full_name(names[1:])))
        self._machine = Gathered(lambda names: (f":monitor:{_kind(names[0])}", full_name(names)))
        self._odd_times = Counter[str]()
        """By series, points whose time cannot be believed."""
        self._cut: list[Problem] = []
        """Of logs that end in the middle of a record."""
        self._console = Console()

    def parts(self, position: str | None) -> Iterator[Part]:
        """The parts of all records, log by log; files come last, each time.

        Raises Malformed if what was given before has to be given anew, and some of it is not here.
        """
        self._reached = _reached(position)
        self._cut = []
        surveyed = self._survey()
        if position is not None and self._is_wrong(surveyed):
            yield Again(cleared=True)
            self._reached = Reached(_FORM)
            surveyed = self._survey()
        if self._reached.began is None:
            self._reached.began = self.run.started
        self._reached.placed.definitions = surveyed.definitions
        self._axes = Axes(self._reached.placed, surveyed.decimal)
        for log in self._logs:
            yield from self._log(log, surveyed.ends[log.folder])
        yield from self._cut
        yield from self._artifacts()

    def _survey(self) -> Surveyed:
        logs = {log.folder: log.path for log in self._logs}
        return survey(logs, self._reached.places, self._reached.placed, self._most)

    def _is_wrong(self, surveyed: Surveyed) -> bool:
        """Whether points that were given have another x than all records say. Raises Malformed."""
        placed, places = self._reached.placed, self._reached.places
        folders = [log.folder for log in self._logs]
        gone = [folder for folder in places if folder not in folders]
        read_first = list(takewhile(places.__contains__, folders))
        is_between = not gone and len(read_first) < len(places)
        is_wrong = self._reached.form != _FORM or is_between or placed.definitions != surveyed.definitions
        is_wrong = is_wrong or bool(placed.whole & surveyed.decimal)
        if is_wrong and gone:
            raise Malformed(f"its points change their x: import all folders of the run together, also '{gone[0]}'")
        return is_wrong

    def _log(self, log: Log, stop: int) -> Iterator[Part]:
        """The parts of a log up to a place."""
        folder, places = log.folder, self._reached.places
        begun = given = read = places.get(folder, START)
        self._files = RunFiles(log.path.parent / "files", self._given)
        self._time = log.run.started or self.run.started or log.path.stat().st_mtime
        if stop > begun or folder not in places:
            self.run.status = self._status
        for record in records(log.path, given, self._most):
            if isinstance(record, Problem):
                if record.may_come:
                    self._cut.append(record)
                else:
                    yield record
                continue
            if record.end > stop:
                break
            try:
                yield from self._record(log, record.data)
            except _BROKEN as error:
                yield Problem(f"{log.path.name}: the record before byte {record.end:,}", str(error))
            read = record.end
            if self._points.count + self._machine.count >= _TOGETHER:
                yield from self._gathered()
                if not self._console:
                    places[folder] = read
                    yield self._position(read - given)
                    given = read
        yield from self._gathered()
        yield from self._console.rest()
        if read > begun or folder not in places:
            places[folder] = read
            yield self._position(read - given)

    def _position(self, done: int) -> Position:
        return Position(msgspec.json.encode(self._reached).decode(), done)

    def _gathered(self) -> Iterator[Part]:
        for gathered in (self._points, self._x, self._machine):
            yield from gathered.taken()
        for name, count in (+self._odd_times).items():
            yield Problem(f"series {name}", NO_TIME, count=count)
        self._odd_times.clear()

    def _artifacts(self) -> Iterator[Artifact]:
        """The files of all folders; of files with the same name, the last folder's.

        A folder that is followed gives a file again when it has changed.
        """
        names: set[str] = set()
        for log in reversed(self._logs):
            for listed in RunFiles(log.path.parent / "files", self._given).listed():
                name = f"{log.folder}/{listed.name}" if listed.name in names else listed.name
                names.add(name)
                key = (log.path, listed.name)
                if key not in self._listed or self._listed[key] != listed.mark:
                    self._listed[key] = listed.mark
                    yield Artifact(name, listed.content)

    def _record(self, log: Log, data: bytes) -> Iterator[Part]:
        for field, content in parsed(messages.Record, data).ListFields():
            match field.name:
                case "history":
                    yield from self._history(log, content)
                case "output" | "output_raw":
                    yield from self._output(content)
                case "summary":
                    add_summary(self.run, content)
                case "config":
                    add_config(self.run, content)
                case "stats":
                    yield from self._statistics(content)
                case "exit":
                    self.run.status = "failed" if content.exit_code else "completed"
                case "alert":
                    level = _ALERTS.get(content.level, "")
                    yield Line(milliseconds(self._time), f"{text(content.title)}: {text(content.text)}", level)
                case "output_logger":
                    yield Line(milliseconds(self._time), text(content.text))
                case "artifact" if content.type != _TABLE:
                    yield Unmapped("artifact", f"{text(content.name)} ({text(content.type)})")
                case "use_artifact":
                    yield Unmapped("use of an artifact", f"{text(content.name)} ({text(content.type)})")

    # --- history -----------------------------------------------------------------------------------

    def _history(self, log: Log, content: bytes) -> Iterator[Part]:
        row = items(content)
        own = dict(row)
        step, is_odd = self._step(log, content, own.get((b"_step",))), self._look(own.get((b"_timestamp",)))
        stamp = milliseconds(self._time)
        add = self._points.add
        if not self._axes.are_plain:
            self._axes.begin_row(row)
            add = self._add
        roots = {names[:-1] for names in own if len(names) > 1 and names[-1] == b"_type"}
        inside: defaultdict[tuple[bytes, ...], list[Item]] = defaultdict(list)
        for names, value in row:
            if names and names[0] in OWN:
                continue
            if roots and (root := root_of(names, roots)):
                inside[root].append((names[len(root) :], value))
                continue
            if is_odd:
                self._odd_times[full_name(names)] += 1
            if value[:1] in b'{["tfn':
                yield from self._told(At(full_name(names), step, stamp), of_json, value)
                continue
            try:
                add(names, step, stamp, float(value))
            except ValueError:
                yield Problem(str(At(full_name(names), step, stamp)), "it is no value of JSON")
        for root, values in inside.items():
            self._odd_times[full_name(root)] += is_odd
            yield from self._told(At(full_name(root), step, stamp), tree, values)

    def _step(self, log: Log, content: bytes, said: bytes | None) -> int:
        """The step of a row; runs of several processes write none.

        A log that begins at 0 again goes on behind the ones before, as those of a run that W&B resumes online do.
        """
        reached = self._reached
        own = number(said) if said is not None else step_beside(content)
        if own is None:
            reached.last += 1
            return reached.last
        if log.folder not in reached.offsets:
            begins_again = not log.goes_back and own == 0
            reached.offsets[log.folder] = reached.last + 1 if begins_again else 0
        step = int(own) + reached.offsets[log.folder]
        if not -(2**63) <= step < 2**63:
            raise Malformed("its step is beyond 64 bits")
        reached.last = max(reached.last, step)
        return step

    def _look(self, said: bytes | None) -> bool:
        """Look at the time of what comes next; whether there is one that cannot be believed."""
        if said is None:
            return False
        try:
            time = believed_seconds(float(said))
        except ValueError:
            time = None
        return not self._is_at(time)

    def _is_at(self, time: float | None) -> bool:
        """It is then, if that can be believed; otherwise it stays as late as it was."""
        if time is None:
            return False
        self._time = time
        self.run.seen(time, time)
        return True

    def _add(self, names: tuple[bytes, ...], step: int, timestamp: int, value: float) -> None:
        """A point, at the x that W&B shows."""
        if not self._axes.are_plain:
            place = self._axes.place(full_name(names), step)
            step = place.iteration
            if place.x is not None:
                self._x.add((place.of.encode(), *names), step, timestamp, float(place.x))
        self._points.add(names, step, timestamp, value)

    def _told(self, at: At, read: Callable[[Any], Any], value: Any) -> Iterator[Part]:
        """What a value is, or why it cannot be read."""
        try:
            yield from self._odd(at, read(value))
        except _BROKEN as error:
            yield Problem(str(at), f"it has no {error}" if isinstance(error, KeyError) else str(error))

    def _odd(self, at: At, value: Any) -> Iterator[Part]:
        """What a value of any type is."""
        if isinstance(value, bool | int | float):
            self._add((at.name.encode(errors="replace"),), at.step, at.timestamp, float(value))
        elif isinstance(value, str):
            metric, variant = names_of(at.name)
            yield Line(at.timestamp, value, metric=metric, variant=variant, iter=at.step)
        elif not isinstance(value, dict):
            yield Unmapped("list" if value is not None else "empty value", str(at))
        elif "_type" in value:
            yield from media(value, at, self._files)
        elif not are_short(at.name, value):
            yield Problem(str(at), "names inside of it are too long")
        else:
            for name, inner in value.items():
                yield from self._odd(at._replace(name=f"{at.name}.{name}"), inner)

    # --- console and machine -----------------------------------------------------------------------

    def _output(self, output: messages.Output) -> Iterator[Part]:
        if not self._is_at(believed_seconds(seconds_of(output.timestamp))):
            self._odd_times["console"] += 1
        yield from self._console.lines(output.output_type, milliseconds(self._time), text(output.line))

    def _statistics(self, statistics: messages.Statistics) -> Iterator[Part]:
        is_odd = not self._is_at(believed_seconds(seconds_of(statistics.timestamp)))
        if self._reached.began is None:
            self._reached.began = self._time
        after, stamp = max(0, round(self._time - self._reached.began)), milliseconds(self._time)
        for item in statistics.item:
            name = text(item.key)
            value = of_json(item.value_json)
            if isinstance(value, int | float):
                self._machine.add((name.encode(),), after, stamp, float(value))
                self._odd_times[name] += is_odd
            else:
                yield Unmapped("statistic that is no number", f"{name} after {after} s")


def _reached(position: str | None) -> Reached:
    """How far a position is."""
    if position is None:
        return Reached(_FORM)
    reached = msgspec.json.decode(position, type=Reached)
    return reached if reached.form else Reached(places=msgspec.json.decode(position, type=dict[str, int]))


def _kind(name: bytes) -> str:
    """What a statistic of the machine is of."""
    return "gpu" if name.startswith(b"gpu") else "machine"
