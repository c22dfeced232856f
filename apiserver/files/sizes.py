"""How many bytes the files of each task take."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from apiserver.files.addresses import task_of
from apiserver.stores.files.listing import files_of


def bytes_by_task(folder: Path, company: str, before: int | None = None) -> dict[str, int]:
    """The bytes of a company's files below `folder`, by the task that their path names; "" for none.

    `before`: only those that were put in their places before this time (epoch ns).
    """
    found: dict[str, int] = defaultdict(int)
    for file in files_of(folder, company):
        if before is None or file.placed_ns < before:
            found[task_of(file.name) or ""] += file.bytes
    return dict(found)
