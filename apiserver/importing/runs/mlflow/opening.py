"""Opens the store that the command line names."""

from __future__ import annotations

from pathlib import Path

from apiserver.importing.runs.mlflow.files import FileStore
from apiserver.importing.runs.mlflow.rest import RestStore
from apiserver.importing.runs.mlflow.sqlite import SqliteStore
from apiserver.importing.runs.mlflow.stores import MlflowStore


def store_at(place: str) -> MlflowStore:
    """The store at a path, or at an address: http[s]://…, sqlite:///PATH, file:PATH. Raises ImportFailed."""
    if place.startswith(("http://", "https://")):
        return RestStore(place)
    path = Path(place.removeprefix("sqlite:///").removeprefix("file://").removeprefix("file:"))
    return SqliteStore(path) if path.is_file() else FileStore(path)
