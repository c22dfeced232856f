"""Finds a run's artifacts on this machine.

A store names the folder of a run's artifacts as the machine saw it that wrote them: `/old/mlruns/1/<run>/artifacts`, or
`mlflow-artifacts:/1/<run>/artifacts` on a server that kept them in `mlartifacts`. Once the store is copied, the same
folder lies beside the database. So it is looked for there by the end of its path, which has the run's id. Nothing
outside of the store's own folder is read, whatever the store says.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

from apiserver.transfer.importing.missing import Reason
from apiserver.transfer.importing.runs.folders import file_at, is_below
from apiserver.transfer.importing.runs.mlflow.stores import Recorded
from apiserver.transfer.importing.runs.model import Artifact, Problem

#: Where MLflow keeps artifacts by itself: beside the store, or in these.
_ROOTS = ("", "mlartifacts", "mlruns")


def artifacts_in(base: Path, run: Recorded) -> Iterator[Artifact | Problem]:
    """The files of a run, which are looked for in the folder `base`."""
    try:
        folder = _folder(base, run)
    except (OSError, ValueError) as error:
        yield Problem("artifacts", f"'{run.artifacts}' cannot be looked for: {error}")
        return
    if folder is None:
        where = f"'{run.artifacts}' is" if run.artifacts else "they are"
        yield Problem(
            "artifacts", f"{where} not in the store's folder; a run without files may have none", Reason.ABSENT
        )
        return
    for here, folders, names in os.walk(folder):
        folders.sort()
        links = [name for name in folders if Path(here, name).is_symlink()]
        for path in (Path(here, name) for name in sorted([*names, *links])):
            yield _artifact(path.relative_to(folder).as_posix(), path, base)


def _artifact(name: str, path: Path, base: Path) -> Artifact | Problem:
    place = f"artifact {name}"
    if path.is_symlink() and not (path.is_file() and is_below(path, base)):
        return Problem(place, "the link leads to no file in the store's folder", Reason.ABSENT)
    try:
        return Artifact(name, file_at(path)) if path.is_file() else Problem(place, "it is no file")
    except OSError as error:
        return Problem(place, str(error))


def _folder(base: Path, run: Recorded) -> Path | None:
    """The first folder that has anything; an empty one only if it is the one that the store means.

    Raises OSError and ValueError.
    """
    scheme, parts = _parts(run.artifacts)
    there = [path for path in _candidates(base, run, scheme, parts) if path.is_dir() and is_below(path, base)]
    if filled := next((path for path in there if any(path.iterdir())), None):
        return filled
    is_meant = not parts or (scheme in ("", "file") and bool(there) and [*there[0].parts[-3:]] == parts[-3:])
    return there[0] if there and is_meant else None


def _candidates(base: Path, run: Recorded, scheme: str, parts: list[str]) -> Iterator[Path]:
    if run.place:
        yield base / run.place / "artifacts"
    if parts and scheme in ("", "file"):
        is_absolute = scheme == "file" or run.artifacts.startswith("/")
        yield Path("/", *parts) if is_absolute else Path(base, *parts)
    if run.id in parts:
        for root in _ROOTS:
            for start in range(parts.index(run.id) + 1):
                yield Path(base, root, *parts[start:])


def _parts(address: str) -> tuple[str, list[str]]:
    """The scheme of an address or path, and the folders and the name in it; those of Windows, too."""
    if ":" not in address:
        return "", [part for part in address.split("/") if part not in ("", ".")]
    where = urlsplit(address)
    return where.scheme, [part for part in unquote(where.path).replace("\\", "/").split("/") if part not in ("", ".")]
