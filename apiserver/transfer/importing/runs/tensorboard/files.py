"""Finds the runs below a folder with event files; `structure.py` says which folders are of one run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from apiserver.transfer.importing.report import ImportFailed
from apiserver.transfer.importing.runs.model import Problem, Run
from apiserver.transfer.importing.runs.tensorboard.run import TensorboardRun
from apiserver.transfer.importing.runs.tensorboard.structure import Structure, each_folder

_MARK = "tfevents"


class TensorboardFolder:
    """The runs below a folder, as one project. The task of a run is named as TensorBoard names the run."""

    unit = "bytes"

    def __init__(
        self, folder: Path, project: str | None, each: bool = False, grows: bool = False, /, **bounds: int
    ) -> None:
        """`each`: each folder is a run. `grows`: files are still written to. `bounds`: as `blocks` has them."""
        self._bounds = bounds
        self._folder = folder
        self._project = project or folder.resolve().name or "tensorboard"
        self._each = each
        self._grows = grows
        self._structure = Structure(folder)

    def total(self) -> int:
        return sum(_size(path) for files in self._folders().values() for path in files)

    def runs(self) -> Iterator[TensorboardRun | Problem]:
        folders = self._folders()
        runs = each_folder(folders) if self._each else self._structure.runs(folders)
        for folder, parts in runs.items():
            relative = folder.relative_to(self._folder).as_posix()
            name = self._folder.resolve().name if relative == "." else relative
            # The name of an event file says when and where it was begun, so it tells runs of the same name apart.
            oldest = min(path.name for part in parts for path in part.files)
            run = Run(f"tensorboard {self._project}: {name} ({oldest})", self._project, name)
            yield TensorboardRun(run, parts, self._each, self._grows, **self._bounds)

    def _folders(self) -> dict[Path, list[Path]]:
        """The folders with event files, and these by their names."""
        if not self._folder.is_dir():
            raise ImportFailed(f"there is no folder '{self._folder}'")
        files_of: dict[Path, list[Path]] = {}
        for here, folders, names in os.walk(self._folder):
            folders.sort()
            if files := [Path(here, name) for name in sorted(names) if _MARK in name and Path(here, name).is_file()]:
                files_of[Path(here)] = files
        return files_of


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
