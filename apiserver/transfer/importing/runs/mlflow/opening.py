"""Opens the store that the command line names."""

from __future__ import annotations

from pathlib import Path

from apiserver.transfer.importing.report import ImportFailed
from apiserver.transfer.importing.runs.mlflow.files import FileStore
from apiserver.transfer.importing.runs.mlflow.rest import RestStore
from apiserver.transfer.importing.runs.mlflow.sqlite import SqliteStore
from apiserver.transfer.importing.runs.mlflow.stores import MlflowStore

#: Where MLflow keeps runs below the folder in which it is started.
_DATABASE, _FOLDER = "mlflow.db", "mlruns"


def store_at(place: str) -> MlflowStore:
    """The store at a path, or at an address: http[s]://…, sqlite:///PATH, file:PATH. Raises ImportFailed.

    A folder without experiments may be the one that the store is in.
    """
    if place.startswith(("http://", "https://")):
        return RestStore(place)
    path = Path(place.removeprefix("sqlite:///").removeprefix("file://").removeprefix("file:"))
    if path.is_file():
        return SqliteStore(path)
    if path.is_dir() and not any(path.glob("*/meta.yaml")):
        if (path / _DATABASE).is_file():
            if any((path / _FOLDER).glob("*/*/meta.yaml")):
                raise ImportFailed(f"'{path}' has two stores, '{_DATABASE}' and '{_FOLDER}': import each of them")
            return SqliteStore(path / _DATABASE)
        if (path / _FOLDER).is_dir():
            return FileStore(path / _FOLDER)
        if (database := path.parent / _DATABASE).is_file() and not any(path.glob("*/*/meta.yaml")):
            raise ImportFailed(f"'{path}' has files of runs, but no runs: import '{database}'")
    return FileStore(path)
