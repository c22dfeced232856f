"""Where things are in the folder of an export."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote

TASK, SCALARS, EVENTS = "task.json", "scalars.parquet", "events.ndjson"
PROJECTS = "projects.json"
#: The field of `task.json` with the digests of the task's files, by their names below the folder.
DIGESTS = "digests"


def task_folders(folder: Path) -> Path:
    """The folder with a folder for each task."""
    return folder / "tasks"


def name_of(url: str, files_url: str) -> str | None:
    """The name of a file on the file server; None for an address elsewhere.

    For example, "http://h:8008/files/team/my%20model.bin" is "/team/my model.bin" on "http://h:8008/files".
    """
    return unquote(url.removeprefix(files_url)) if url.startswith(f"{files_url}/") else None


def file_path(folder: Path, name: str) -> Path | None:
    """Where the file of that name on the server is kept; None if its name would lead elsewhere, or is too long."""
    parts = [part for part in name.split("/") if part]
    if not parts or any(part in (".", "..") or len(part.encode()) > 255 or "\0" in part for part in parts):
        return None
    return Path(folder, "files", *parts)
