"""Takes the runs of a source into a server: a task for each run, found again by what identifies the run.

How far a run has been read is kept in its task. It is written only once the server has everything up to there. So
another import goes on from there, whatever ended the one before. Points and samples that are sent again replace
themselves. Lines would not: so it is counted how many lines the server has taken or refused, and as many are passed
over. Refused ones are written down before more lines are sent. For example, 5 of the source's lines are before the
position, the task has 7, and the server refused 1: so the next 3 lines of the source were sent before. An import that
is killed just between a refusal and the writing down may still double as many lines as were refused at once.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import IntEnum
from itertools import chain, islice
from threading import Lock
from typing import Any, NamedTuple

import msgspec
import orjson

from apiserver.common.sizes import counted
from apiserver.stores.documents.query import Document
from apiserver.transfer.importing.missing import Missing, Reason, together
from apiserver.transfer.importing.report import Count, Report, SourceRefused
from apiserver.transfer.importing.runs.model import (
    BROKEN,
    Again,
    Artifact,
    Model,
    Note,
    Part,
    Position,
    Problem,
    Run,
    RunSource,
    Source,
    Unmapped,
)
from apiserver.transfer.importing.runs.names import project_name
from apiserver.transfer.importing.runs.progress import Progress
from apiserver.transfer.importing.runs.sending import RunSender, Told
from apiserver.transfer.importing.runs.sent_lines import FirstLines, LinesThere, SentLines
from apiserver.transfer.importing.runs.server import Server

#: Runs that are looked up at once.
_PAGE = 100
#: The server is told how far a run has been read after this number of events or seconds.
_SAVE_EVENTS, _SAVE_SECONDS = 1_000_000, 5.0
#: How often a source that grows is looked at.
_FOLLOW_SECONDS = 1.0
#: The server takes no more parameters of a section.
_MOST_PARAMETERS = 10_000
#: Most runs that are named together.
_NAMED = 5
_WHOLE = (
    "it has changed, and is read only as a whole; --restore does so, and brings again what was deleted or thinned here"
)
#: The guess of the status of a run while it is taken, or grows.
_GROWS: Document = {"guessed_status": "in_progress"}


class State(msgspec.Struct):
    """How far a run has been read: kept in its task as JSON."""

    at: str | None = None
    """The source's position."""
    lines: int = 0
    """Lines of the source up to there, without lines that are too long to be sent."""
    refused: int = 0
    """Lines that the server has refused, up to there or behind it."""
    started: float | None = None
    completed: float | None = None
    files: bool = False
    """Whether artifacts were imported, too."""
    status: str | None = None
    """The last word of the source on how the run ended, or that it goes on."""
    said: str = ""
    """The digest of what the source said of the run before its parts were read."""
    project: str = ""
    """The project that the run was brought to."""
    deleted: str | None = None
    """When events of the task had last been deleted, as the run was read from its start."""
    missing: list[Missing] = []
    """The entries that the run lacks up to the position."""
    clearing: bool = False
    """The events of the task are to be deleted before the run is read from its start, which may have been done."""


class EarlierImport(NamedTuple):
    """The task that an earlier import made of a run, and how far that import came."""

    task: str
    state: State
    deleted: str | None = None
    """When events of the task were last deleted or thinned there."""

    @property
    def has_fewer(self) -> bool:
        """Whether the task has fewer events than were imported. A run without a position is read from its start."""
        return self.state.at is not None and self.deleted != self.state.deleted


class Outcome(IntEnum):
    """What became of a run. Of several outcomes the largest counts: a run that is followed stays new."""

    LEFT, KNOWN, UPDATED, MOVED, NEW = range(5)


@dataclass(slots=True)
class Taking:
    """An import into one server."""

    server: Server
    report: Report
    progress: Progress
    with_files: bool = False
    goes_on: bool = False
    """The runs are still growing, so their tasks stay in progress."""
    restore: bool = False
    """Bring what was deleted or thinned on the server again."""
    _earlier: dict[str, EarlierImport] = field(default_factory=dict, init=False)
    """By source, runs that were taken or looked up."""
    _fewer: dict[str, str] = field(default_factory=dict, init=False)
    """By source, the names of runs that have fewer events on the server than were imported."""
    _outcomes: dict[str, Outcome] = field(default_factory=dict, init=False)
    """By source, the outcome of each run."""
    _awaited: list[Problem] = field(default_factory=list, init=False)
    """Problems of the last look at the source that may go away, as a file may only not be written to its end."""

    @property
    def has_any(self) -> bool:
        """Whether the server has any of the runs."""
        return bool(self._earlier)

    def take(self, source: Source) -> None:
        """Import all runs as they are now. Raises ImportFailed."""
        try:
            self._take_all(source)
        finally:
            self._count()

    def _take_all(self, source: Source) -> None:
        self._awaited.clear()
        runs = source.runs()
        while page := list(islice(runs, _PAGE)):
            self._look_up(item.run.source for item in page if not isinstance(item, Problem | Unmapped | Note))
            for item in page:
                if isinstance(item, Problem) and item.may_come and self.goes_on:
                    self._awaited.append(item)
                elif isinstance(item, Unmapped) and item.on_purpose:
                    self.report.not_mapped(item.kind, item.name)
                elif isinstance(item, Problem | Unmapped):
                    self.report.miss(_missing(item, ""))
                elif isinstance(item, Note):
                    self.report.note(item.text)
                else:
                    self._take(item)

    def follow(self, source: Source) -> None:
        """Import again and again, until the user interrupts it."""
        self.goes_on = True
        while True:
            self.take(source)
            time.sleep(_FOLLOW_SECONDS)

    def close(self) -> None:
        """Tell the report what was awaited in vain, and what is missing because it was deleted."""
        for problem in self._awaited:
            self.report.miss(_missing(problem, ""))
        if self._fewer and not self.restore:
            runs = f"{counted(len(self._fewer), 'runs')} {'has' if len(self._fewer) == 1 else 'have'}"
            names = ", ".join([*islice(self._fewer.values(), _NAMED), *(["…"] if len(self._fewer) > _NAMED else [])])
            why = "deleted or thinned here; --restore brings them again"
            self.report.note(f"{runs} fewer events here than were imported ({names}): {why}")

    def _look_up(self, sources: Iterable[str]) -> None:
        unknown = [source for source in sources if source not in self._earlier]
        if unknown:
            for run in self.server.call("tasks.get_imported_runs", {"sources": unknown})["runs"]:
                self._earlier[run["source"]] = EarlierImport(
                    run["task"], _state(run["position"]), run.get("events_deleted")
                )

    def looked_up(self, source: str) -> EarlierImport | None:
        """The earlier import of a run, as the server has it now."""
        self._earlier.pop(source, None)
        self._look_up([source])
        return self._earlier.get(source)

    def _take(self, run_source: RunSource) -> None:
        self.report.count("runs")  # it is named first, before what comes of it
        outcome = Outcome.LEFT
        try:
            outcome = self._take_parts(run_source)
        except (SourceRefused, OSError, *BROKEN) as error:
            self.report.problem("run", run_source.run.name, str(error))
        finally:  # also of a run in whose middle the import is ended: it is left
            self._outcomes[run_source.run.source] = max(outcome, self._outcomes.get(run_source.run.source, outcome))

    def _count(self) -> None:
        """Tell the report of all runs, each of which counts once."""
        of = Counter(self._outcomes.values())
        if of:
            taken = of[Outcome.UPDATED] + of[Outcome.MOVED] + of[Outcome.NEW]
            self.report.counts["runs"] = Count(
                *(of.total(), taken, of[Outcome.UPDATED], of[Outcome.MOVED], of[Outcome.KNOWN], of[Outcome.LEFT])
            )

    def _take_parts(self, run_source: RunSource) -> Outcome:
        """Import what is new of a run."""
        run, earlier = run_source.run, self._earlier.get(run_source.run.source)
        before = State() if earlier is None else earlier.state
        if earlier is not None and earlier.has_fewer:
            self._fewer[run.source] = run.name
        restores = self.restore and run.source in self._fewer
        stays_gone = run.source in self._fewer and not restores
        needs_files = self.with_files and not before.files
        state = before
        if (restores and earlier is not None and earlier.has_fewer) or (needs_files and not stays_gone):
            state = State(
                refused=0 if restores else before.refused,
                project=before.project,
                status=before.status,
                clearing=before.clearing,
            )
        run.project = self._project(run)
        writer = _RunWriter(self, run, earlier, state, restores=restores)
        run.started = run.started if state.started is None else state.started
        run.completed = run.completed if state.completed is None else state.completed
        try:
            if state.clearing:
                writer.begin_again(cleared=True)
            # All files first: a source is read by one reader at a time.
            files = list(_only_files(run_source.parts(None))) if needs_files and stays_gone else []
            parts = run_source.parts(state.at)
            first = next(parts, None)
            if isinstance(first, Again) and stays_gone:
                self.report.problem("run", run.name, _WHOLE, Reason.GONE)
                writer.finish()
                return Outcome.LEFT
            if isinstance(first, Again):
                writer.begin_again(cleared=first.cleared)
            for part in chain(files, (first,), parts):
                self._take_part(part, run, writer)
            return writer.finish()
        finally:
            writer.close()

    def _take_part(self, part: Part | None, run: Run, writer: _RunWriter) -> None:
        match part:
            case None | Again():
                pass
            case Problem(may_come=True) if self.goes_on:
                pass
            case Problem() | Unmapped():
                writer.miss(_missing(part, run.name))
            case Note():
                writer.note(part.text)
            case Position():
                self.progress.advance(done=part.done)
                writer.passed(part.text)
            case Artifact(about={"uri": str()}) | Model() if not self.with_files:
                writer.add(replace(part, content=None))
            case Artifact() if not self.with_files:
                self.report.not_mapped("artifact, without --files", part.name)
            case _:
                writer.add(part)

    def _project(self, run: Run) -> str:
        """The name of the run's project as the server takes it."""
        name, is_cut = project_name(run.project)
        if is_cut:
            cause = f"the project '{run.project}' has too many levels, so it is '{name}'"
            self.report.miss(Missing(Reason.OVER_LIMIT, f"run {run.name}", cause))
        return name

    def remember(self, source: str, task: str, state: State) -> None:
        """Keep how far the import of a run came, for the next look at the run."""
        earlier = self._earlier.get(source)
        self._earlier[source] = EarlierImport(task, state, earlier.deleted if earlier else None)


class _RunWriter:
    """Writes one run: its task when there is something to write, its events, and how far it has been read."""

    def __init__(
        self, taking: Taking, run: Run, earlier: EarlierImport | None, state: State, *, restores: bool
    ) -> None:
        """`restores`: deleted lines are brought again, and how far that is is not written before it is done."""
        self._taking = taking
        self._run = run
        self._task = earlier.task if earlier else None
        self._state = state
        self._restores = restores
        self._deleted = state.deleted if state.at is not None else earlier.deleted if earlier else None
        self._sender: RunSender | None = None
        self._lines_before = state.lines
        self._save_at = time.monotonic() + _SAVE_SECONDS
        self._at, self._lines_at = state.at, state.lines
        self._said = _digest(_about(run, self._status(run.status)))
        self._is_new = earlier is None
        self._missing = list(state.missing)
        """Up to the position. Threads change it one at a time."""
        self._changing = Lock()
        self._before = list(state.missing)
        """The entries that earlier imports missed, and this import has not brought."""
        self._behind: list[Missing] = []
        """The entries behind the position: the source will say them again."""

    def miss(self, missing: Missing) -> None:
        """The source cannot give something."""
        self._taking.report.miss(missing)
        self._behind.append(missing)

    def begin_again(self, *, cleared: bool) -> None:
        """All that was read before comes again; with `cleared`, what the task has of it is deleted."""
        self._missing, self._before, self._at = [], [], None
        self._lines_before = self._lines_at = self._state.lines = 0
        if cleared and self._task is not None:
            self._state.clearing, self._state.refused = True, 0
            self._call(self._position())
            self._taking.server.call("events.delete_for_task", {"task": self._task, "allow_locked": True})
            known = self._taking.looked_up(self._run.source)
            self._deleted, self._state.clearing = known.deleted if known else None, False

    def add(self, part: Any) -> None:
        if self._sender is None:
            self._sender = self._begin()
        self._sender.add(part)

    @property
    def _lines(self) -> int:
        return self._lines_before + (self._sender.lines if self._sender else 0)

    def passed(self, at: str) -> None:
        """Everything so far was added: remember the position, and write it now and then."""
        self._at, self._lines_at = at, self._lines
        if self._behind:
            with self._changing:
                self._missing, self._behind = together(self._missing, self._behind), []
        if self._restores or self._sender is None:
            return
        if self._sender.unsaved < _SAVE_EVENTS and time.monotonic() < self._save_at:
            return
        self._sender.flush()
        self._call(self._position())
        self._save_at = time.monotonic() + _SAVE_SECONDS

    def finish(self) -> Outcome:
        """Write the rest."""
        if self._sender is not None:
            self._sender.flush()
        for missing in (*self._before, *_over_limits(self._run)):
            self._taking.report.miss(missing)
        is_as_before = (self._at, self._said) == (self._state.at, self._state.said)
        is_sent = self._sender is not None and self._sender.changes
        if self._task is not None and not is_sent and is_as_before:
            return Outcome.KNOWN
        before, self._state.project = self._state.project, self._run.project
        self._state.said = self._said
        self._lines_at, self._state.files = self._lines, self._taking.with_files
        position = self._position()
        self._call({**_about(self._run, self._status(self._state.status)), **position})
        if self._is_new:
            return Outcome.NEW
        return Outcome.MOVED if before and before != self._run.project else Outcome.UPDATED

    def close(self) -> None:
        if self._sender is not None:
            self._sender.close()

    def _begin(self) -> RunSender:
        sent: SentLines = FirstLines(0)
        if self._task is None:
            self._call(_about(self._run, _GROWS))
            assert self._task is not None
        elif self._restores:
            sent = LinesThere(self._taking.server, self._task)
        else:
            found = self._taking.server.call("events.get_task_log", {"task": self._task, "batch_size": 1})
            sent = FirstLines(int(found.get("total") or 0) + self._state.refused - self._state.lines)
        folder = f"{self._run.project}/{self._run.name.replace('/', '_')}.{self._task}"
        taking = self._taking
        told = Told(taking.report, self._unsendable, self._refused, self.note, self._mended, self._lines_refused)
        return RunSender(taking.server, self._task, folder, sent, told, taking.progress)

    def _of_run(self, place: str) -> str:
        return f"run {self._run.name}: {place}"

    def _unsendable(self, missing: Missing) -> None:
        """Something cannot be sent; the source will give it again."""
        self.miss(msgspec.structs.replace(missing, of=self._of_run(missing.of)))

    def _refused(self, missing: Missing) -> None:
        """The server did not take something, and nobody will say that again."""
        missing = msgspec.structs.replace(missing, of=self._of_run(missing.of))
        self._taking.report.miss(missing)
        with self._changing:
            self._missing = together(self._missing, [missing])

    def note(self, text: str) -> None:
        """Something is to be said of the run, though nothing is missing."""
        self._taking.report.note(self._of_run(text))

    def _mended(self, place: str) -> None:
        """Forget the entries that were missing there before: the source may have them now."""
        place = self._of_run(place)
        self._before = [missing for missing in self._before if missing.of != place]
        with self._changing:
            self._missing = [missing for missing in self._missing if missing.of != place]

    def _lines_refused(self, lines: int) -> None:
        """Called in the sender's thread, so before it sends more."""
        self._state.refused += lines
        if not self._restores:
            self._call({"position": msgspec.json.encode(self._state).decode()})

    def _position(self) -> Document:
        self._state.at, self._state.lines = self._at, self._lines_at
        self._state.started, self._state.completed = self._run.started, self._run.completed
        self._state.status = self._run.status or self._state.status
        self._state.missing, self._state.deleted = self._missing, self._deleted
        return {"position": msgspec.json.encode(self._state).decode()}

    def _status(self, said: str | None) -> Document:
        """The status of the run in the request: the source's, or else a guess."""
        if said is not None:
            return {"status": said}
        return _GROWS if self._taking.goes_on else {"guessed_status": self._run.guess}

    def _call(self, request: Document) -> None:
        done = self._taking.server.call("tasks.import_run", {"source": self._run.source, **request})
        self._task = done["id"]
        self._taking.remember(self._run.source, done["id"], self._state)


def _about(run: Run, status: Document) -> Document:
    """The request that makes the task of a run, or updates it. A field that the run lacks stays as it is."""
    times = {"started": run.started, "completed": None if "in_progress" in status.values() else run.completed}
    said = {name: _iso(value) for name, value in times.items() if value is not None}
    params = {
        section: {name: {"section": section, "name": name, "value": value} for name, value in _most(entries)}
        for section, entries in run.parameters.items()
    }
    more = {
        "tags": run.tags,
        "comment": run.comment,
        "hyperparams": {section: entries for section, entries in params.items() if entries},
        "configuration": {name: {"name": name, "value": value} for name, value in run.configuration.items()},
        "runtime": run.properties,
    }
    about: Document = {
        "name": run.name or "run",
        "project_name": run.project,
        **status,
    }
    if run.system_tags is not None:
        about["system_tags"] = run.system_tags
    if "started" in said:
        about["created"] = said["started"]
    return {**about, **said, **{name: value for name, value in more.items() if value}, **run.task}


def _only_files(parts: Iterable[Part]) -> Iterator[Part]:
    """The artifacts and models among the parts."""
    return (part for part in parts if isinstance(part, Artifact | Model))


def _missing(part: Problem | Unmapped, run: str) -> Missing:
    """The entry for something that a source says it cannot give."""
    if isinstance(part, Unmapped):
        return Missing(Reason.NO_PLACE, f"{run}: {part.name}" if run else part.name, part.kind)
    place = f"{run}: {part.of}" if run else part.of
    return Missing(part.reason, f"run {place}", part.cause, part.count)


def _over_limits(run: Run) -> Iterator[Missing]:
    for section, entries in run.parameters.items():
        if (left := len(entries) - _MOST_PARAMETERS) > 0:
            cause = f"a section has at most {_MOST_PARAMETERS:,} parameters; the others were left out"
            yield Missing(Reason.OVER_LIMIT, f"run {run.name}: parameters of {section}", cause, left)


def _digest(about: Document) -> str:
    return hashlib.blake2b(orjson.dumps(about, option=orjson.OPT_SORT_KEYS), digest_size=12).hexdigest()


def _most(entries: dict[str, str]) -> Iterator[tuple[str, str]]:
    return islice(entries.items(), _MOST_PARAMETERS)


def _iso(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(0, UTC).isoformat()


def _state(position: str | None) -> State:
    """The state that is kept in a task; a new one if there is none."""
    try:
        return msgspec.json.decode(position or "{}", type=State)
    except msgspec.DecodeError:
        return State()
