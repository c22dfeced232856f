"""Makes runs of W&B's folders `offline-run-…` and `run-…`, each with a `.wandb` file.

Config, tags and notes become parameters, tags and the comment. Numbers of the history become scalars, under the names
that W&B shows: "n.x" for nested ones. Text becomes log lines, images and histograms what they are, the console the
log, and the machine's statistics scalars by seconds since the start.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from apiserver.importing.report import ImportFailed
from apiserver.importing.runs.folders import file_at, files_below, is_below
from apiserver.importing.runs.model import (
    Artifact,
    Figure,
    Image,
    Line,
    Part,
    Points,
    Position,
    Problem,
    Run,
    Unmapped,
    bars,
    milliseconds,
    names_of,
)
from apiserver.importing.runs.wandb.history import Item, items
from apiserver.importing.runs.wandb.log import MAX_RECORD, START, Begun, Record, records
from apiserver.protobuf_wire import Malformed, Message, fields

#: Fields of a record.
_HISTORY, _SUMMARY, _OUTPUT, _CONFIG, _STATS, _OUTPUT_RAW, _RUN, _EXIT = 2, 3, 4, 5, 7, 13, 17, 18
_UNMAPPED = {8: "artifact", 10: "alert"}
#: The record of the run itself is among the first so many.
_EARLY = 1000
#: Points that are kept until they are given on together.
_TOGETHER = 50_000
_OWN = b"_"
_MOST_BINS = 100_000
#: Characters of a line of the console, and bytes of a value with NaN in it.
_LONGEST_LINE, _LONGEST_ODD = 2**20, 2**20
#: By the number of a stream: stderr is 0.
_LEVELS = {0: "error"}


class WandbFolder:
    """The runs below a folder; their projects are below `project`, if there is one."""

    unit = "bytes"

    def __init__(self, folder: Path, project: str | None, most: int = MAX_RECORD) -> None:
        self._most = most
        self._folder = folder
        self._project = project
        if not folder.is_dir():
            raise ImportFailed(f"there is no folder '{folder}'")

    def total(self) -> int:
        return sum(path.stat().st_size for _, path in self._logs())

    def runs(self) -> Iterator[WandbRun | Problem]:
        for name, path in self._logs():
            try:
                yield WandbRun(path, self._project, self._most)
            except (OSError, ValueError) as error:
                yield Problem(name, str(error), may_come=isinstance(error, Begun))

    def _logs(self) -> Iterator[tuple[str, Path]]:
        for name, path in files_below(self._folder):
            if path.suffix == ".wandb":
                yield name, path


class WandbRun:
    """One run. Raises Malformed if its record is missing."""

    def __init__(self, path: Path, project: str | None, most: int = MAX_RECORD) -> None:
        """`most`: bytes of the largest record that is taken."""
        self._most = most
        self._path = path
        self.run = _run(path, project)
        self._points = _Gathered()
        self._console: dict[int, tuple[int, str]] = {}
        """By stream, the time and text of a line that is not complete."""

    def parts(self, position: str | None) -> Iterator[Part]:
        """The parts of all records; files come last. A position has the place in the file of each folder of the run.

        A run that was resumed has several folders, which all become one task.
        """
        places: dict[str, int] = json.loads(position) if position else {}
        here = self._path.parent.name
        begun = given = read = places.get(here, START)
        for record in records(self._path, given, self._most):
            if isinstance(record, Problem):
                yield record
                continue
            try:
                yield from self._record(record.data)
            except (Malformed, ValueError) as error:
                yield Problem(f"the record before byte {record.end:,}", str(error))
            read = record.end
            if self._points.count >= _TOGETHER:
                yield from self._points.taken()
                if not self._console:
                    places[here] = read
                    yield Position(json.dumps(places), read - given)
                    given = read
        yield from self._points.taken()
        for time, text in self._console.values():
            yield Line(time, text)
        self._console.clear()
        if read == begun and here in places:
            return
        for name, path in files_below(self._path.parent / "files"):
            if not name.startswith("media/images/"):
                yield Artifact(name, file_at(path))
        places[here] = read
        yield Position(json.dumps(places), read - given)

    def _record(self, data: bytes) -> Iterator[Part]:
        for field in fields(data):
            content = data[field.start : field.stop]
            if field.number == _HISTORY:
                yield from self._history(content)
            elif field.number in (_OUTPUT, _OUTPUT_RAW):
                yield from self._output(Message(content))
            elif field.number == _SUMMARY and content[2:3] == b"\x0a":
                self._summary(content)
            elif field.number == _CONFIG:
                _add_config(self.run, content)
            elif field.number == _STATS:
                self._statistics(Message(content))
            elif field.number == _EXIT:
                self.run.status = "failed" if Message(content).integer(1) else "completed"
            elif field.number in _UNMAPPED:
                yield Unmapped(_UNMAPPED[field.number], Message(content).text(5))

    def _summary(self, content: bytes) -> None:
        """Keep what the user has put into the summary. What W&B itself puts there is in the history, too.

        W&B names its own items as those of the history (field 2), a user's are named by field 1.
        """
        for names, value in items(content):
            if names[:1] and not names[0].startswith(_OWN):
                found = self.run.parameters.setdefault("summary", {})
                _flatten("/".join(_text((one,)) for one in names), _json(value), found)

    # --- history -----------------------------------------------------------------------------------

    def _history(self, content: bytes) -> Iterator[Part]:
        found = items(content)
        own = dict(found)
        said_step, said_time = own.get((b"_step",)), own.get((b"_timestamp",))
        # Older versions write the step beside the items.
        step = Message(content).message(2).integer(1) if said_step is None else int(said_step)
        time = (self.run.started or 0.0) if said_time is None else float(said_time)
        self.run.seen(time, time)
        stamp = milliseconds(time)
        nested: dict[str, list[Item]] = {}
        for names, value in found:
            if names and names[0][:1] == _OWN:
                continue
            if len(names) > 1:
                nested.setdefault(_text(names[:1]), []).append((names[1:], value))
            elif value[:1] in b'{["tfn':
                yield from self._odd(_text(names), step, time, _json(value))
            else:
                self._points.add(names, step, stamp, float(value))
        for name, inside in nested.items():
            yield from self._nested(name, step, time, inside)

    def _nested(self, name: str, step: int, time: float, inside: list[Item]) -> Iterator[Part]:
        if any(names == (b"_type",) for names, _ in inside):
            media = {_text(names): _json(value) for names, value in inside}
            yield from self._odd(name, step, time, media)
            return
        for names, value in inside:
            yield from self._odd(f"{name}.{_text(names)}", step, time, _json(value))

    def _odd(self, name: str, step: int, time: float, value: Any) -> Iterator[Part]:
        """What a value of any type is."""
        stamp = milliseconds(time)
        metric, variant = names_of(name)
        if isinstance(value, bool | int | float):
            self._points.add((name.encode(),), step, stamp, float(value))
        elif isinstance(value, str):
            yield Line(stamp, value, metric=metric, variant=variant, iter=step)
        elif not isinstance(value, dict):
            yield Unmapped("list", name) if value is not None else Unmapped("empty value", name)
        elif "_type" not in value:
            for inner, one in value.items():
                yield from self._odd(f"{name}.{inner}", step, time, one)
        elif value["_type"] == "histogram":
            yield Figure(metric, variant, step, stamp, _histogram(name, value))
        elif value["_type"] in ("image-file", "images/separated", "images"):
            yield from self._images(metric, variant, step, stamp, value)
        else:
            yield Unmapped(str(value["_type"]), name)

    def _images(self, metric: str, variant: str, step: int, stamp: int, value: dict[str, Any]) -> Iterator[Part]:
        paths = value.get("filenames") or [value.get("path")]
        if not isinstance(paths, list):
            raise Malformed(f"the images of '{variant}' have no files")
        root = self._path.parent / "files"
        for number, one in enumerate(paths):
            path = root / str(one)
            if not is_below(path, root) or not path.is_file():
                yield Problem(f"image {metric}/{variant}", f"there is no file '{one}' in the run's folder")
                continue
            named = f"{variant}/{number}" if len(paths) > 1 else variant
            yield Image(metric, named, step, stamp, path.suffix, file_at(path))

    # --- console and machine -----------------------------------------------------------------------

    def _output(self, output: Message) -> Iterator[Part]:
        """Whole lines; of a line that overwrites itself, what was left in the end."""
        stream, seconds = output.integer(1), _seconds(output.message(2))
        self.run.seen(seconds, seconds)
        time, before = self._console.pop(stream, (milliseconds(seconds), ""))
        *lines, rest = (before + output.text(3)).split("\n")
        for line in lines:
            yield Line(time, line.rstrip("\r").rpartition("\r")[2], level=_LEVELS.get(stream, ""))
            time = milliseconds(seconds)
        if rest:
            self._console[stream] = (time, rest[-_LONGEST_LINE:])

    def _statistics(self, stats: Message) -> None:
        seconds = _seconds(stats.message(2))
        after = max(0, round(seconds - (self.run.started or seconds)))
        for item in stats.messages(3):
            value = _json(item.bytes(16))
            if isinstance(value, int | float):
                kind = "gpu" if item.text(1).startswith("gpu") else "machine"
                name = f":monitor:{kind}/{item.text(1)}".encode()
                self._points.add((name,), after, milliseconds(seconds), float(value))


class _Gathered:
    """Points by name, until they are given on together."""

    def __init__(self) -> None:
        self._rows: dict[tuple[bytes, ...], list[tuple[int, int, float]]] = {}
        self.count = 0

    def add(self, names: tuple[bytes, ...], step: int, timestamp: int, value: float) -> None:
        rows = self._rows.get(names)
        if rows is None:
            rows = self._rows[names] = []
        rows.append((step, timestamp, value))
        self.count += 1

    def taken(self) -> Iterator[Points | Problem]:
        for names, rows in self._rows.items():
            steps, times, values = zip(*rows, strict=True)
            name = _text(names)
            try:
                iters = np.array(steps, np.int64)
            except OverflowError:
                yield Problem(name, "a step is beyond 64 bits")
                continue
            yield Points(*names_of(name), iters, np.array(times, np.int64), np.array(values, np.float64))
        self._rows, self.count = {}, 0


def _run(path: Path, project: str | None) -> Run:
    """What the first records say of the run. Raises Malformed if none of them is about the run."""
    read = records(path)
    for record in islice(read, _EARLY):
        if not isinstance(record, Record) or _RUN not in (found := Message(record.data)):
            continue
        about = found.message(_RUN)
        id, entity, named = about.text(1), about.text(2), about.text(3) or "uncategorized"
        place = "/".join(one for one in (project, entity, named) if one)
        run = Run(f"wandb {entity}/{named}/{id}", place, about.text(8) or id, guess="stopped", piece=path.parent.name)
        run.tags, run.comment = [tag.decode(errors="replace") for tag in about.each(10)], about.text(9)
        run.started = _seconds(about.message(17)) or None
        more = {"run_id": about.text(1), "group": about.text(6), "job_type": about.text(7), "sweep": about.text(12)}
        run.parameters["wandb"] = {name: value for name, value in more.items() if value}
        _add_config(run, about.bytes(4))
        return run
    raise (Malformed if next(read, None) else Begun)("it has no record of a run")


def _add_config(run: Run, content: bytes) -> None:
    found = run.parameters.setdefault("config", {})
    for names, value in items(content):
        if not names[0].startswith(_OWN):
            _flatten("/".join(_text((one,)) for one in names), _json(value), found)


def _flatten(name: str, value: Any, into: dict[str, str]) -> None:
    if isinstance(value, dict) and value:
        for inner, one in value.items():
            _flatten(f"{name}/{inner}", one, into)
    else:
        into[name] = value if isinstance(value, str) else json.dumps(value)


def _histogram(name: str, value: dict[str, Any]) -> dict[str, Any]:
    """The figure of a histogram, whose bins are told by their edges or packed as the least, the width, the number."""
    counts = value.get("values")
    packed = value.get("packedBins") or {}
    edges = value.get("bins") or [
        packed["min"] + packed["size"] * n for n in range(min(_MOST_BINS, packed["count"]) + 1)
    ]
    if not isinstance(counts, list) or len(edges) != len(counts) + 1 or len(counts) > _MOST_BINS:
        raise Malformed(f"the histogram '{name}' is malformed")
    return bars(name, [float(one) for one in edges], [float(one) for one in counts])


def _seconds(stamp: Message) -> float:
    return stamp.integer(1) + stamp.integer(2) / 1e9


@lru_cache(maxsize=4096)
def _text(names: tuple[bytes, ...]) -> str:
    return b".".join(names).decode(errors="replace")


def _json(value: bytes) -> Any:
    """The value of JSON, in which Python writes NaN. Raises ValueError."""
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        if len(value) > _LONGEST_ODD:
            raise
        try:
            return json.loads(value)
        except RecursionError:
            raise Malformed("a value is nested too deep") from None
