"""The folders of a run, each with a log: the first records about the run, and the order in which they began."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from apiserver.common.protobuf_wire import Malformed
from apiserver.transfer.importing.runs.model import Run
from apiserver.transfer.importing.runs.protobuf import parsed, text
from apiserver.transfer.importing.runs.wandb import messages
from apiserver.transfer.importing.runs.wandb.config import add_config
from apiserver.transfer.importing.runs.wandb.log import Begun, Record, records
from apiserver.transfer.importing.runs.wandb.times import believed_seconds, seconds_of

#: The record of the run itself is among this number of first records.
_EARLY = 1000
#: Bytes of two files that are compared at once.
_COMPARED = 2**20


class Log(NamedTuple):
    """The log of a folder, and what it says of its run at first."""

    folder: str
    path: Path
    run: Run
    goes_back: bool
    """The run was rewound, or began at a step that it says."""


def log_at(path: Path, project: str | None) -> Log:
    """The log at a path, with the run of its first records. Raises Malformed if no such record is about the run."""
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
    run.started = believed_seconds(seconds_of(about.start_time))
    more = {"run_id": about.run_id, "group": about.run_group, "job_type": about.job_type, "sweep": about.sweep_id}
    run.parameters["wandb"] = {name: text(value) for name, value in more.items() if value}
    add_config(run, about.config)
    return run


def in_order(logs: list[Log]) -> tuple[list[Log], list[Log]]:
    """The logs of a run in the order in which they began, without copies; and the logs whose folder name is taken."""
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
        with path.open("rb") as copy, longer.open("rb") as original:
            return all(piece == original.read(len(piece)) for piece in iter(lambda: copy.read(_COMPARED), b""))
    except OSError:
        return False


def together(runs: Sequence[Run]) -> Run:
    """The run of which all folders say something: of the same field, the last folder's value counts."""
    sections = dict.fromkeys(section for run in runs for section in run.parameters)
    parameters: dict[str, dict[str, str]] = {section: {} for section in sections}
    for run in runs:
        for section, entries in run.parameters.items():
            parameters[section].update(entries)
    started = min((run.started for run in runs if run.started is not None), default=None)
    return replace(runs[-1], parameters=parameters, started=started)
