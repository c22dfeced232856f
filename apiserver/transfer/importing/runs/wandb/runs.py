"""Finds W&B's folders `offline-run-…` and `run-…`, each with a `.wandb` file, and makes runs of them.

A run that was resumed has several folders. They are read in the order in which they began, and all become one task.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from apiserver.transfer.importing.report import ImportFailed
from apiserver.transfer.importing.runs.folders import files_below
from apiserver.transfer.importing.runs.model import BROKEN, Problem
from apiserver.transfer.importing.runs.wandb.folders import Log, in_order, log_at
from apiserver.transfer.importing.runs.wandb.log import MAX_RECORD, Begun
from apiserver.transfer.importing.runs.wandb.run import Marks, WandbRun


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
        logs_of: defaultdict[str, list[Log]] = defaultdict(list)
        for name, path in self._logs():
            try:
                log = log_at(path, self._project)
            except (*BROKEN, OSError) as error:
                yield Problem(name, str(error), may_come=isinstance(error, Begun))
            else:
                logs_of[log.run.source].append(log)
        for logs in logs_of.values():
            ordered, taken = in_order(logs)
            yield WandbRun(ordered, self._folder, self._listed, self._most)
            for log in taken:
                yield Problem(str(log.path), f"another folder of this run is named '{log.folder}', too")

    def _logs(self) -> Iterator[tuple[str, Path]]:
        for name, path in files_below(self._folder):
            if path.suffix == ".wandb":
                yield name, path
