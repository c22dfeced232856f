"""Lists the files of all companies on disk, one at a time, however many there are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from apiserver.stores.files.names import disk_folder

_FOLDER = "+"


class ListedFile(NamedTuple):
    """A file on disk."""

    company: str
    path: str
    """Below the folder of the company, as `names.disk_path` makes it of the file's name."""
    bytes: int
    placed_ns: int
    """When it was put in its place, in epoch nanoseconds."""

    @property
    def parts(self) -> list[str]:
        """The parts of its name; a very long one is cut."""
        *folders, file = self.path.split("/")
        return [*(unquote(one.removesuffix(_FOLDER)) for one in folders), unquote(file)]

    @property
    def name(self) -> str:
        """Its name, for people."""
        return f"/{'/'.join(self.parts)}"


def each_file(folder: Path) -> Iterator[ListedFile]:
    """The files below the folder of files; what vanishes meanwhile is left out."""
    for company in _entries(folder):
        if company.name.endswith(_FOLDER) and company.is_dir(follow_symlinks=False):
            name = unquote(company.name.removesuffix(_FOLDER))
            yield from _files_in(company.path, name)


def files_of(folder: Path, company: str) -> Iterator[ListedFile]:
    """The files of one company."""
    return _files_in(str(folder / disk_folder(company)), company)


def _files_in(folder: str, company: str) -> Iterator[ListedFile]:
    for path, status in _below(folder, ""):
        yield ListedFile(company, path, status.st_size, status.st_ctime_ns)


def _below(folder: str, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
    for entry in _entries(folder):
        if entry.is_dir(follow_symlinks=False):
            yield from _below(entry.path, f"{prefix}{entry.name}/")
        elif entry.is_file(follow_symlinks=False):
            try:
                yield f"{prefix}{entry.name}", entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue


def _entries(folder: str | Path) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            yield from sorted(found, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
