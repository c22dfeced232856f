"""Files in a source's folder. Nothing outside of it is read, whatever a source says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from apiserver.transfer.importing.runs.model import File


def file_at(path: Path) -> File:
    """The file at a path. Raises OSError."""
    return File(path.stat().st_size, lambda: path.open("rb"))


def small_file(path: Path, most: int) -> bytes:
    """The content of a regular file of at most so many bytes: a pipe would be waited for. Raises OSError."""
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
