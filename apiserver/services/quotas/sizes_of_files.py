"""How many files each task has, and how many bytes they take."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from apiserver.fileserver.addresses import task_of
from apiserver.stores.files.listing import files_of


@dataclass(slots=True)
class Files:
    """The files of one task."""

    count: int = 0
    bytes: int = 0


def files_by_task(folder: Path, company: str, before: int) -> dict[str, Files]:
    """A company's files below `folder`, by the task that their path names; "" for none.

    Only files that were put in their places before the time `before` (epoch ns).
    """
    by_task: dict[str, Files] = defaultdict(Files)
    for file in files_of(folder, company):
        if file.placed_ns < before:
            files = by_task[task_of(file.name) or ""]
            files.count += 1
            files.bytes += file.bytes
    return dict(by_task)
