"""The files of a run, in its folder `files`. Links are followed inside the folder that is imported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from apiserver.transfer.importing.runs.folders import file_at, is_below
from apiserver.transfer.importing.runs.model import File

#: What the history shows of these comes as media; masks of images have no place there.
_MEDIA = ("media/images/", "media/audio/", "media/videos/", "media/html/")
_MASKS = "media/images/mask/"


class Listed(NamedTuple):
    """A file that does not come as media."""

    name: str
    content: File
    """One that cannot be read says why when it is opened."""
    mark: tuple[int, int] | None
    """Its size and when it was changed; None if it cannot be read."""


class RunFiles:
    """The files of one folder `files`."""

    def __init__(self, folder: Path, given: Path) -> None:
        """`given`: the folder that is imported."""
        self._folder = folder
        self._given = given

    def at(self, name: str) -> Path | None:
        """The file of that name, if there is one that may be read."""
        relative = Path(name)
        if relative.is_absolute() or ".." in relative.parts or "\0" in name:
            return None
        path = self._folder / relative
        return path if self._why_not(path) is None else None

    def listed(self) -> Iterator[Listed]:
        """All files that do not come as media."""
        for name, path in _below(self._folder, self._given, set()):
            if name.startswith(_MEDIA) and not name.startswith(_MASKS):
                continue
            if why_not := self._why_not(path):
                yield Listed(name, _none(why_not), None)
            else:
                about = path.stat()
                yield Listed(name, file_at(path), (about.st_size, about.st_mtime_ns))

    def _why_not(self, path: Path) -> str | None:
        """Why a file may not be read, or cannot."""
        to = f"it is a link to '{path.readlink()}'" if path.is_symlink() else "it is a path"
        if not is_below(path, self._given):
            return f"{to}, which is outside of the folder that is imported"
        return None if path.is_file() else f"{to}, where there is no file"


def _below(folder: Path, given: Path, seen: set[Path], name: str = "") -> Iterator[tuple[str, Path]]:
    """All that is below a folder, by name, in order; also below links to folders, but each folder once."""
    if not folder.is_dir() or not is_below(folder, given) or (here := folder.resolve()) in seen:
        return
    seen.add(here)
    for path in sorted(folder.iterdir()):
        if path.is_dir() and is_below(path, given):
            yield from _below(path, given, seen, f"{name}{path.name}/")
        else:
            yield name + path.name, path


def _none(why: str) -> File:
    """The content of a file that is not there."""

    def opened() -> BinaryIO:
        raise FileNotFoundError(why)

    return File(0, opened)
