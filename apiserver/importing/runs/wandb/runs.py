"""Makes runs of W&B's folders `offline-run-…` and `run-…`, each with a `.wandb` file.

A run that was resumed has several folders. They are read in the order in which they began, and all become one task.

Config, tags and notes become parameters, tags and the comment. Numbers of the history become scalars, under the names
that W&B shows ("n.x" for nested ones) and at the x that it shows (`axes.py`). Text and alerts become log lines, media
and plots what they are (`media.py`), the console the log, and the machine's statistics scalars by seconds since the
start.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np

from apiserver.importing.report import ImportFailed
from apiserver.importing.runs.folders import files_below
from apiserver.importing.runs.model import (
    BROKEN,
    Again,
    Artifact,
    Line,
    Part,
    Points,
    Position,
    Problem,
    Run,
    Unmapped,
    milliseconds,
    names_of,
    names_of_x,
)
from apiserver.importing.runs.protobuf import parsed, text
from apiserver.importing.runs.times import NO_TIME, of_number
from apiserver.importing.runs.wandb import messages
from apiserver.importing.runs.wandb.axes import Axes, Placed, Surveyed, survey
from apiserver.importing.runs.wandb.files import RunFiles
from apiserver.importing.runs.wandb.history import Item, full_name, items, number, of_json
from apiserver.importing.runs.wandb.log import MAX_RECORD, START, Begun, Record, records
from apiserver.importing.runs.wandb.media import At, media
from apiserver.protobuf_wire import Malformed

#: The record of the run itself is among the first so many.
_EARLY = 1000
#: Points that are kept until they are given on together.
_TOGETHER = 50_000
#: Names of W&B itself.
_OWN = (b"_step", b"_timestamp", b"_runtime", b"_wandb")
#: W&B keeps a table as an artifact, too.
_TABLE = b"run_table"
#: Characters of a line of the console.
_LONGEST_LINE = 2**20
#: A value is nested at most so deep.
_DEEPEST = 100
#: Bytes of two files that are compared at once.
_COMPARED = 2**20
#: By the number of a stream: stderr is 0.
_LEVELS = {0: "error"}
_ALERTS = {b"WARN": "warning", b"ERROR": "error"}
#: That of positions.
_FORM = 1
#: What may be raised by a value that is not as it should be.
_BROKEN = (*BROKEN, OSError)


#: By log and name, the marks of files that were given.
Marks: TypeAlias = dict[tuple[Path, str], tuple[int, int] | None]


class Log(NamedTuple):
    """The log of a folder, and what it says of its run at first."""

    folder: str
    path: Path
    run: Run
    goes_back: bool
    """The run was rewound, or began at a step that it says."""


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


class WandbFolder:
    """The runs below a folder; their projects are below `project`, if there is one."""

    unit = "bytes"

    def __init__(self, folder: Path, project: str | None, most: int = MAX_RECORD) -> None:
        self._most = most
        self._folder = folder
        self._project = project
        self._listed: Marks = {}
        if not folder.is_dir():
            raise ImportFailed(f"there is no folder '{folder}'")

    def total(self) -> int:
        return sum(path.stat().st_size for _, path in self._logs())

    def runs(self) -> Iterator[WandbRun | Problem]:
        found: defaultdict[str, list[Log]] = defaultdict(list)
        for name, path in self._logs():
            try:
                log = _log(path, self._project)
            except _BROKEN as error:
                yield Problem(name, str(error), may_come=isinstance(error, Begun))
            else:
                found[log.run.source].append(log)
        for logs in found.values():
            ordered, taken = _in_order(logs)
            yield WandbRun(ordered, self._folder, self._listed, self._most)
            for log in taken:
                yield Problem(str(log.path), f"another folder of this run is named '{log.folder}', too")

    def _logs(self) -> Iterator[tuple[str, Path]]:
        for name, path in files_below(self._folder):
            if path.suffix == ".wandb":
                yield name, path


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
        self.run = _together([log.run for log in logs])
        self._status = self.run.status
        self._reached = Reached()
        self._axes = Axes(Placed())
        self._files = RunFiles(logs[0].path.parent / "files", given)
        self._time = 0.0
        self._points = _Gathered(lambda names: names_of(full_name(names)))
        self._x = _Gathered(lambda names: names_of_x(full_name(names[:1]), full_name(names[1:])))
        self._machine = _Gathered(lambda names: (f":monitor:{_kind(names[0])}", full_name(names)))
        self._odd_times = Counter[str]()
        """By series, points whose time cannot be believed."""
        self._cut: list[Problem] = []
        """Of logs that end in the middle of a record."""
        self._console: dict[int, tuple[int, str]] = {}
        """By stream, the time and text of a line that is not complete."""

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
        for time, line in self._console.values():
            yield Line(time, line)
        self._console.clear()
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
        """The files of all folders; if several have one of the same name, it is that of the last one.

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
                case "summary" if content[2:3] == b"\x0a":
                    self._summary(content)
                case "config":
                    _add_config(self.run, content)
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

    def _summary(self, content: bytes) -> None:
        """Keep what the user has put into the summary. What W&B itself puts there is in the history, too.

        W&B names its own items as those of the history (field 2), a user's are named by field 1.
        """
        for names, value in items(content):
            if names[:1] and names[0] not in _OWN:
                summary = self.run.parameters.setdefault("summary", {})
                _flatten("/".join(full_name((name,)) for name in names), of_json(value), summary)

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
            if names and names[0] in _OWN:
                continue
            if roots and (root := _root(names, roots)):
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
            yield from self._told(At(full_name(root), step, stamp), _tree, values)

    def _step(self, log: Log, content: bytes, said: bytes | None) -> int:
        """The step of a row; runs of several processes write none.

        A log that begins at 0 again goes on behind the ones before, as those of a run that W&B resumes online do.
        """
        reached = self._reached
        own = number(said) if said is not None else _step_beside(content)
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
            time = _believed(float(said))
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
        else:
            for name, inner in value.items():
                yield from self._odd(at._replace(name=f"{at.name}.{name}"), inner)

    # --- console and machine -----------------------------------------------------------------------

    def _output(self, output: messages.Output) -> Iterator[Part]:
        """Whole lines; of a line that overwrites itself, what was left in the end."""
        stream = output.output_type
        if not self._is_at(_believed(_seconds(output.timestamp))):
            self._odd_times["console"] += 1
        stamp = milliseconds(self._time)
        begun, before = self._console.pop(stream, (stamp, ""))
        *lines, rest = (before + text(output.line)).split("\n")
        for line in lines:
            yield Line(begun, line.rstrip("\r").rpartition("\r")[2], level=_LEVELS.get(stream, ""))
            begun = stamp
        if rest:
            self._console[stream] = (begun, rest[-_LONGEST_LINE:])

    def _statistics(self, statistics: messages.Statistics) -> Iterator[Part]:
        is_odd = not self._is_at(_believed(_seconds(statistics.timestamp)))
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


class _Gathered:
    """Points by name, until they are given on together."""

    def __init__(self, named: Callable[[tuple[bytes, ...]], tuple[str, str]]) -> None:
        """`named`: the metric and variant of names."""
        self._named = named
        self._rows: dict[tuple[bytes, ...], list[tuple[int, int, float]]] = {}
        self.count = 0

    def add(self, names: tuple[bytes, ...], step: int, timestamp: int, value: float) -> None:
        rows = self._rows.get(names)
        if rows is None:
            rows = self._rows[names] = []
        rows.append((step, timestamp, value))
        self.count += 1

    def taken(self) -> Iterator[Points]:
        for names, rows in self._rows.items():
            steps, times, values = zip(*rows, strict=True)
            metric, variant = self._named(names)
            iters, timestamps = np.array(steps, np.int64), np.array(times, np.int64)
            yield Points(metric, variant, iters, timestamps, np.array(values, np.float64))
        self._rows, self.count = {}, 0


def _in_order(logs: list[Log]) -> tuple[list[Log], list[Log]]:
    """The logs of a run as they began, without those that are copies of others; and those whose folder is taken."""
    chosen: dict[str, Log] = {}
    taken = []
    for log in sorted(logs, key=lambda log: -log.path.stat().st_size):
        if any(_is_copy(log.path, other.path) for other in chosen.values() if other.run.started == log.run.started):
            continue
        if log.folder in chosen:
            taken.append(log)
        else:
            chosen[log.folder] = log
    return sorted(chosen.values(), key=lambda log: (log.run.started or 0.0, log.folder)), taken


def _is_copy(path: Path, longer: Path) -> bool:
    """Whether a file is the beginning of another one, or the whole of it."""
    try:
        with path.open("rb") as one, longer.open("rb") as other:
            return all(piece == other.read(len(piece)) for piece in iter(lambda: one.read(_COMPARED), b""))
    except OSError:
        return False


def _together(runs: list[Run]) -> Run:
    """What all folders of a run say of it: the last one counts."""
    sections = dict.fromkeys(section for run in runs for section in run.parameters)
    parameters: dict[str, dict[str, str]] = {section: {} for section in sections}
    for run in runs:
        for section, entries in run.parameters.items():
            parameters[section].update(entries)
    started = min((run.started for run in runs if run.started is not None), default=None)
    return replace(runs[-1], parameters=parameters, started=started)


def _reached(position: str | None) -> Reached:
    """How far a position is."""
    if position is None:
        return Reached(_FORM)
    found = msgspec.json.decode(position, type=Reached)
    return found if found.form else Reached(places=msgspec.json.decode(position, type=dict[str, int]))


def _log(path: Path, project: str | None) -> Log:
    """What the first records say of the run. Raises Malformed if none of them is about the run."""
    read = records(path)
    for record in islice(read, _EARLY):
        if not isinstance(record, Record):
            continue
        about = parsed(messages.Record, record.data)
        if about.HasField("run"):
            run = _run(about.run, project)
            goes_back = about.run.starting_step > 0 or about.run.HasField("branch_point")
            return Log(path.parent.name, path, run, goes_back)
    raise (Malformed if next(read, None) else Begun)("it has no record of a run")


def _run(about: messages.Run, project: str | None) -> Run:
    id, entity, named = text(about.run_id), text(about.entity), text(about.project) or "uncategorized"
    place = "/".join(name for name in (project, entity, named) if name)
    run = Run(f"wandb {entity}/{named}/{id}", place, text(about.display_name) or id, guess="stopped")
    run.tags, run.comment = [text(tag) for tag in about.tags], text(about.notes)
    run.started = _believed(_seconds(about.start_time))
    more = {"run_id": about.run_id, "group": about.run_group, "job_type": about.job_type, "sweep": about.sweep_id}
    run.parameters["wandb"] = {name: text(value) for name, value in more.items() if value}
    _add_config(run, about.config)
    return run


def _add_config(run: Run, content: bytes) -> None:
    config = run.parameters.setdefault("config", {})
    for names, value in items(content):
        if names[0] not in _OWN:
            _flatten("/".join(full_name((name,)) for name in names), of_json(value), config)


def _flatten(name: str, value: Any, into: dict[str, str]) -> None:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            _flatten(f"{name}/{key}", inner, into)
    else:
        into[name] = value if isinstance(value, str) else json.dumps(value)


def _kind(name: bytes) -> str:
    """What a statistic of the machine is of."""
    return "gpu" if name.startswith(b"gpu") else "machine"


def _root(names: tuple[bytes, ...], roots: set[tuple[bytes, ...]]) -> tuple[bytes, ...]:
    """The value with a `_type` that this one is inside of; empty without one."""
    depths = range(1, min(len(names), _DEEPEST))
    return next((names[:depth] for depth in depths if names[:depth] in roots), ())


def _tree(inside: list[Item]) -> dict[str, Any]:
    """Nested values, by their names. Raises ValueError."""
    made: dict[str, Any] = {}
    for names, value in inside:
        here: Any = made
        for name in names[:-1]:
            here = here.setdefault(full_name((name,)), {})
            if not isinstance(here, dict):
                raise Malformed("a value has values inside of it")
        here[full_name(names[-1:])] = of_json(value)
    return made


def _believed(time: float) -> float | None:
    """The epoch seconds of a number; None if it is no time that can be believed."""
    millis = of_number(time)
    return None if millis is None else millis / 1000


def _seconds(stamp: messages.Timestamp) -> float:
    return stamp.seconds + stamp.nanos / 1e9


def _step_beside(row: bytes) -> int | None:
    """The step that older versions write beside the items of a row."""
    history = parsed(messages.History, row)
    return history.step.num if history.HasField("step") else None
