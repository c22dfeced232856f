"""Files in a source's folder. Nothing outside of it is read, whatever a source says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from apiserver.transfer.importing.report import ImportFailed
from apiserver.transfer.importing.runs.model import File


def file_at(path: Path) -> File:
    """The file at a path. Raises OSError."""
    return File(path.stat().st_size, lambda: path.open("rb"))


def small_file(path: Path, most: int) -> bytes:
    """The content of a regular file of at most `most` bytes; a pipe would block the reader. Raises OSError."""
    if not path.is_file() or path.stat().st_size > most:
        raise OSError(f"{path.name} is no file of at most {most:,} bytes")
    with path.open("rb") as file:
        return file.read(most)


def is_below(path: Path, folder: Path) -> bool:
    """Whether a path, with all links followed, leads into a folder."""
    try:
        return path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # a link leads to itself, or the path has a NUL
        return False


def files_below(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files below a folder, by name, in order. Links are not followed, below it."""
    for here, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(here, name)
            if path.is_file() and not path.is_symlink():
                yield path.relative_to(folder).as_posix(), path


class RunsFolder:
    """A folder with runs below it, whose files are known by their names; the runs' projects are below `project`."""

    unit = "bytes"

    def __init__(self, folder: Path, project: str | None) -> None:
        """`project`: None if the runs' projects are below no other one. ImportFailed if there is no such folder."""
        self._folder = folder
        self._project = project
        if not folder.is_dir():
            raise ImportFailed(f"there is no folder '{folder}'")

    def total(self) -> int:
        return sum(path.stat().st_size for _, path in self._files())

    def _files(self) -> Iterator[tuple[str, Path]]:
        """The files of runs, by their names below the folder, in order."""
        return ((name, path) for name, path in files_below(self._folder) if self._is_of_run(name))

    def _is_of_run(self, name: str) -> bool:
        """Whether a file of this name belongs to a run."""
        raise NotImplementedError
