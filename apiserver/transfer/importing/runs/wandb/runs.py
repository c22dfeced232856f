"""Finds W&B's folders `offline-run-…` and `run-…`, each with a `.wandb` file, and makes runs of them.

A run that was resumed has several folders. They are read in the order in which they began, and all become one task.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from apiserver.transfer.importing.runs.folders import RunsFolder
from apiserver.transfer.importing.runs.model import BROKEN, Problem
from apiserver.transfer.importing.runs.wandb.folders import Log, in_order, log_at
from apiserver.transfer.importing.runs.wandb.log import MAX_RECORD, Begun
from apiserver.transfer.importing.runs.wandb.run import Marks, WandbRun


class WandbFolder(RunsFolder):
    """The runs of W&B below a folder."""

    def __init__(self, folder: Path, project: str | None, most: int = MAX_RECORD) -> None:
        """`most`: bytes of the longest record that is read."""
        super().__init__(folder, project)
        self._most = most
        self._listed: Marks = {}

    def runs(self) -> Iterator[WandbRun | Problem]:
        logs_of: defaultdict[str, list[Log]] = defaultdict(list)
        for name, path in self._files():
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

    def _is_of_run(self, name: str) -> bool:
        return Path(name).suffix == ".wandb"
